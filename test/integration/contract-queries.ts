/** A query parameter of an operation: accepted and rejected values. */
export interface QueryRow {
  operation: string;
  name: string;
  good: readonly string[];
  bad: readonly string[];
}

const lists = [
  'listGenerations',
  'listFinetunes',
  'listPrompts',
  'listCollections',
  'listStyles',
  'listKeys',
  'listFailures',
  'listKeyDeliveries',
];
const days = { good: ['1000-01-01', '2024-02-29'], bad: ['', 'today', '2026-02-30', '2026-1-1', '2026-01-01T00:00Z'] };

const times = {
  good: ['2026-11-20', '2026-11-20T09:21:33.123Z', '2026-11-20T09:21%2B01:00'],
  bad: ['', 'today', '2026-02-30', '1763630493', '2026-11-20T25:00:00Z', '2026-11-20T09:21'],
};

/** Every query parameter of the contract. */
export const queries: readonly QueryRow[] = [
  ...lists.flatMap((operation) => [
    { operation, name: 'limit', good: ['1', '100'], bad: ['0', '101', '-1', '1.5', 'x', '', '1&limit=2'] },
    { operation, name: 'after', good: [], bad: ['', 'x', 'a'.repeat(24), 'a'.repeat(22), '%00'] },
  ]),
  ...['listGenerations', 'listPrompts'].flatMap((operation) => [
    { operation, name: 'status', good: ['queued', 'succeeded'], bad: ['', 'done', 'QUEUED', 'queued&status=failed'] },
    { operation, name: 'created_after', ...times },
    { operation, name: 'created_before', ...times },
  ]),
  { operation: 'listCollections', name: 'scope', good: ['public'], bad: ['', 'own', 'PUBLIC', 'public&scope=public'] },
  ...['listUsage', 'listKeyUsage'].flatMap((operation) => [
    { operation, name: 'from', ...days },
    { operation, name: 'to', ...days },
    { operation, name: 'group_by', good: ['day', 'model', 'finetune'], bad: ['', 'key', 'DAY'] },
  ]),
  { operation: 'listKeyDeliveries', name: 'status', good: ['pending', 'failed'], bad: ['', 'done', 'FAILED'] },
  {
    operation: 'putFinetuneWeights',
    name: 'scale',
    good: ['0', '2', '0.75', '1e0'],
    bad: ['-0.1', '2.01', '1.00000000000000000001', 'x', '', 'NaN', '1&scale=1'],
  },
];
