import { type Ingredient, type Manifest, sourceTypes } from '@app/credentials';
import { serviceVersion } from '@app/process';
import type { PictureParameters } from './image-encoder';
import { sourceTypeOf } from './source-type';

/** A picture that a drawing was given. */
export interface GivenPicture {
  /** Its field in the request: `image`, `mask`, `control[0]`, `references[0]`. */
  field: string;
  /** Of its file, in hexadecimal. */
  sha256: string;
  /** The file, where it has credentials of its own. */
  credentials?: { bytes: Uint8Array; type: string } | undefined;
}

interface Drawn {
  /** Of the record. */
  id: string;
  index: number;
  parameters: PictureParameters;
  given: readonly GivenPicture[];
}

/**
 * What a picture's credentials say: that a model has made it, or edited the picture that was given as `image`, and
 * which record tells of it. Other given pictures are inputs.
 * @param withPrompt whether they tell the prompt too
 * @see https://spec.c2pa.org/specifications/specifications/2.2/specs/C2PA_Specification.html#_actions
 */
export function claimsOf(
  { id, index, parameters, given }: Drawn,
  withPrompt: boolean,
): { manifest: Manifest; ingredients: Ingredient[] } {
  const { model, model_hash: version, weights_hash: weights, finetunes = [], prompt, negative_prompt } = parameters;
  const parent = given.find(({ field }) => field === 'image');
  const inputs = given.filter((each) => each !== parent).map(({ field }) => field);
  const hashes = weights === undefined ? finetunes.flatMap(({ weights_hash: hash }) => hash ?? []) : [weights];
  const made = {
    action: parent ? 'c2pa.edited' : 'c2pa.created',
    digitalSourceType: sourceTypes + sourceTypeOf({ image: parent }),
    softwareAgent: { name: model, ...(version && { version }) },
    parameters: {
      record: id,
      index,
      ...(hashes.length > 0 && { weights_hashes: hashes }),
      ...(withPrompt && { prompt, ...(negative_prompt !== null && { negative_prompt }) }),
      ...(inputs.length > 0 && { ingredientIds: inputs }),
    },
  };
  const opened = parent && { action: 'c2pa.opened', parameters: { ingredientIds: [parent.field] } };
  return {
    manifest: {
      claim_generator_info: [{ name: 'Darkroom', version: serviceVersion }],
      title: `${id}, ${index}`,
      assertions: [{ label: 'c2pa.actions.v2', data: { actions: opened ? [opened, made] : [made] } }],
    },
    ingredients: given.map(({ field, sha256, credentials }) => ({
      definition: {
        instance_id: field,
        title: field,
        relationship: field === 'image' ? 'parentOf' : 'inputTo',
        description: `SHA-256 ${sha256}`,
      },
      ...(credentials && { file: credentials }),
    })),
  };
}
