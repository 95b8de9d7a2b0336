import { reportOf } from './picture-report';

const id = 'Vb3kP0tTq2m8XcZr5LwYd1Ha';

/** A manifest with an action, as the library reads it. */
function storeWith(parameters: unknown) {
  const data = { actions: [{ action: 'c2pa.created', parameters }] };
  const manifests = { one: { assertions: [{ label: 'c2pa.actions.v2', data }] } };
  return { active_manifest: 'one', manifests, validation_state: 'Valid' as const };
}

describe(reportOf.name, () => {
  it('tells the record that a picture names', () => {
    expect(reportOf([], storeWith({ record: id, index: 2 })).record).toEqual({ id, index: 2 });
  });

  it.each([
    { record: id, index: 1.5 },
    { record: id, index: -1 },
    { record: id, index: 99_999_999_999 },
    { record: `${id.slice(1)}\0`, index: 0 },
    { record: 'x', index: 0 },
    { record: id },
    null,
  ])('takes nothing else for one: %j', (parameters) => {
    expect(reportOf([], storeWith(parameters)).record).toBeNull();
  });

  const [validated, trusted, untrusted] = ['validated', 'trusted', 'untrusted'].map((word) => `timeStamp.${word}`);
  it.each([
    [[validated, trusted], '2030-01-01T00:00:00Z'],
    [[validated, untrusted], null],
    [[validated, untrusted, validated, trusted], null],
    [[], null],
  ])('takes the time of time stamps %j for %j', (codes, time) => {
    const { manifests, ...store } = storeWith(null);
    const stamped = { ...manifests.one, signature_info: { time: '2030-01-01T00:00:00Z' } };
    const success = codes.filter((code) => code !== untrusted).map((code) => ({ code }));
    const informational = codes.filter((code) => code === untrusted).map((code) => ({ code }));
    const validation_results = { activeManifest: { success, informational } };
    const read = { ...store, manifests: { one: stamped }, validation_results };
    expect(reportOf([], read).credentials.signed_at).toBe(time);
  });
});
