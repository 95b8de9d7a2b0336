import { type ModelDto, OpenaiModelDto } from '@app/domain/http';

/** A model as OpenAI's API has it, with all that ours says beside it. @param id the name that was asked for */
export function openaiModel(model: ModelDto, addedAt: string, id = model.name): OpenaiModelDto {
  const created = Math.floor(Date.parse(addedAt) / 1000);
  return Object.assign(new OpenaiModelDto(), model, { id, object: 'model', created, owned_by: 'darkroom' });
}
