import { Finetune, type FinetuneWeightsKind } from '@app/domain';
import type { EntityManager } from 'typeorm';

/** A stored file of weights, and what was found in it. */
export interface NewWeights {
  kind: FinetuneWeightsKind;
  /** Embeddings of a textual inversion; null for a LoRA. */
  vectors: number | null;
  /** On assumptions, for people. */
  note: string | null;
  /** Tensors that met no layer of the model. */
  unmatched: number;
  hash: string;
  bytes: number;
  key: string;
  scale: number;
  /** `<model>@<hash>` that it was checked against; null in a sandbox. */
  base: string | null;
}

/**
 * Gives a Fine-Tune, which the transaction has locked, these weights in place of earlier ones.
 * @returns what is changed, and by how much its owner stores more; the caller counts that last.
 */
export async function assignWeights(manager: EntityManager, finetune: Finetune, file: NewWeights) {
  const change = {
    weightsKind: file.kind,
    weightsVectors: file.vectors,
    weightsHash: file.hash,
    weightsKey: file.key,
    weightsBytes: file.bytes,
    weightsScale: file.scale,
    weightsBase: file.base,
    weightsNote: file.note,
    status: 'ready',
  } as const;
  await manager.update(Finetune, { id: finetune.id }, change);
  // A trigger forgets the count with the key: processes of an earlier version write no count.
  const { unmatched: weightsUnmatched } = file;
  await manager.update(Finetune, { id: finetune.id }, { weightsUnmatched });
  return { change: { ...change, weightsUnmatched }, weightBytes: file.bytes - (finetune.weightsBytes ?? 0) };
}
