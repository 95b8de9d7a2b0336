import { type ErrorCode, FieldProblems, Finetune, isIdentifier, type UsedFinetune } from '@app/domain';
import type { FinetuneUseDto } from '@app/domain/http';
import { type InstalledModel, weightsName } from '@app/model-store';
import { type EntityManager, In } from 'typeorm';

type Use = UsedFinetune & { finetune: Finetune };

/**
 * The caller's Fine-Tunes that a request combines, in its order.
 * @throws UnprocessableError naming each that is unknown, has no weights, has a scale that it cannot have, or shares
 * its token with another of them
 */
export async function findUsedFinetunes(
  manager: EntityManager,
  accountId: string,
  sent: readonly FinetuneUseDto[],
): Promise<Use[]> {
  const ids = sent.map(({ id }) => id).filter(isIdentifier);
  const found = ids.length > 0 ? await manager.findBy(Finetune, { accountId, id: In(ids) }) : [];
  const named = sent.map(({ id, scale }) => ({ scale, finetune: found.find((each) => each.id === id) }));
  refuse('FineTuneNotFound', named, 'id', ({ finetune }) =>
    finetune ? undefined : 'must be the id of a Fine-Tune of yours',
  );
  const uses = named.map(({ scale, finetune }) => ({ finetune: finetune!, sentScale: scale }));
  refuse('WeightsMissing', uses, 'id', ({ finetune }) =>
    finetune.weightsKey === null ? 'must be the id of a Fine-Tune that has weights' : undefined,
  );
  const isEmbedding = ({ finetune }: { finetune: Finetune }): boolean => finetune.weightsKind === 'textual_inversion';
  refuse('ScaleUnsupported', uses, 'scale', (use) =>
    isEmbedding(use) && (use.sentScale ?? 1) !== 1 ? 'must be 1 for a textual inversion, or be left out' : undefined,
  );
  const embeddings = uses.filter(isEmbedding);
  refuse('FineTuneTokensEqual', uses, 'id', (use) => {
    const first = embeddings.find((other) => tokenOf(other.finetune) === tokenOf(use.finetune));
    return first && isEmbedding(use) && first !== use
      ? `is an embedding with the token "${use.finetune.token}", as one before it`
      : undefined;
  });
  return uses.map((use) => {
    const { finetune, sentScale } = use;
    return { id: finetune.id, scale: isEmbedding(use) ? 1 : (sentScale ?? finetune.weightsScale), finetune };
  });
}

/**
 * @param model its name in the request
 * @param served the model that will draw
 * @throws UnprocessableError naming each Fine-Tune whose weights were checked against another model
 */
export function assertOfModel(uses: readonly Use[], model: string, served: InstalledModel): void {
  const base = weightsName(served);
  const isOther = ({ finetune }: Use): boolean =>
    finetune.weightsBase === null ? finetune.model !== model : finetune.isStale(base);
  refuse('FineTuneOfOtherModel', uses, 'id', (use) =>
    isOther(use) && use.finetune.model !== model
      ? `is of the model ${use.finetune.model}, and ${model} is to draw`
      : undefined,
  );
  refuse('FineTuneStale', uses, 'id', (use) =>
    isOther(use) ? `has weights that were checked against ${use.finetune.weightsBase}; ${base} is to draw` : undefined,
  );
}

const tokenOf = ({ token }: Finetune): string => token.normalize('NFC').toLowerCase();

function refuse<T>(
  code: ErrorCode<'unprocessable'>,
  uses: readonly T[],
  field: string,
  problemOf: (use: T) => string | undefined,
): void {
  const problems = new FieldProblems();
  for (const [index, use] of uses.entries()) {
    const problem = problemOf(use);
    if (problem !== undefined) problems.add(`/finetunes/${index}`, field, problem);
  }
  problems.refuseIfAny(code);
}
