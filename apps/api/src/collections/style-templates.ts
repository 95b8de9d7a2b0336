import type { CreateStyleDto } from '@app/domain/http';
import { FinetunePrompt, isIdentifier, toTemplate } from '@app/domain';
import type { EntityManager } from 'typeorm';
import { loopTime } from '../defence/loop-time';

/**
 * Templates of the caller's own Prompts by id. Texts and names of a Fine-Tune never change, so this runs before the
 * transaction that makes the Styles, a few milliseconds at a time, and once per Prompt.
 */
export async function templatesOf(
  manager: EntityManager,
  ownerId: string,
  dtos: readonly CreateStyleDto[],
): Promise<ReadonlyMap<string, string>> {
  const ids = promptIdsOf(dtos);
  if (ids.length === 0) return new Map();
  const prompts = await manager
    .createQueryBuilder(FinetunePrompt, 'prompt')
    .innerJoinAndSelect('prompt.finetune', 'finetune')
    .where('prompt.owner_id = :ownerId AND prompt.id = ANY(:ids)', { ownerId, ids })
    .getMany();
  const templates = new Map<string, string>();
  await loopTime.forEach(ownerId, prompts, ({ id, prompt, finetune }) =>
    templates.set(id, toTemplate(prompt, finetune)),
  );
  return templates;
}

/** The Prompts to make Styles from, without duplicates. */
export function promptIdsOf(dtos: readonly CreateStyleDto[]): string[] {
  return [...new Set(dtos.map(({ id }) => id).filter(isIdentifier))];
}
