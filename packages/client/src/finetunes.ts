import type { RequestOptions } from './connection.ts';
import { TrainingFailedError } from './errors.ts';
import type { EventOptions } from './events.ts';
import { recordsOf } from './records.ts';
import { pathOf, type Verbs } from './requests.ts';
import type * as api from './types.ts';
import type { QueryOf } from './types.ts';
import { makeAndWait, type MakeOptions, waitFor, type WaitOptions } from './wait.ts';

export const finetunesPath = '/v1/finetunes';
/** A training on a processor takes hours. */
const trainingTimeoutMs = 24 * 3_600_000;

/** The requests of Fine-Tunes. */
export function finetunesOf(verbs: Verbs) {
  const { post, patch, putBytes, events, file } = verbs;
  const records = recordsOf<api.Finetune, 'listFinetunes'>(verbs, finetunesPath);
  const create = (body: api.NewFinetune, more?: RequestOptions) => post<api.Finetune>(finetunesPath, body, more);
  const wait = (id: string, options: WaitOptions = {}) =>
    waitFor(id, { timeoutMs: trainingTimeoutMs, ...options }, async (more) => {
      const found = await records.get(id, more);
      return found.status === 'queued' || found.status === 'training' ? undefined : found;
    });
  return {
    ...records,
    /** Registers a Fine-Tune, or with `images_url` has it trained, or with `weights_url` given weights; does not wait. */
    create,
    /**
     * Has it trained from pictures, and waits for that; `timeoutMs`, the time of both, is a day where it is not given.
     * @throws TrainingFailedError if it failed or was canceled; WaitTimeoutError; the reason of an aborted signal.
     */
    async train(
      body: api.NewFinetune & { images_url: string[] },
      options: MakeOptions<api.Finetune> = {},
    ): Promise<api.Finetune> {
      const finetune = await makeAndWait({ create, wait }, body, { timeoutMs: trainingTimeoutMs, ...options });
      if (finetune.status === 'failed' || finetune.status === 'canceled') throw new TrainingFailedError(finetune);
      return finetune;
    },
    /** Waits until its training is over, or its weights are fetched; its `status` says how. */
    wait,
    /** Its place in the queue, its steps with their loss, and its end; a stream that breaks is opened again. */
    events: (id: string, options?: EventOptions) => events<api.Finetune>(pathOf(finetunesPath, id, 'events'), options),
    cancel: (id: string, more?: RequestOptions) =>
      post<api.Finetune>(pathOf(finetunesPath, id, 'cancel'), undefined, more),
    /** The bytes of its weights, a safetensors file; `dialect: 'comfy'` names its layers as ComfyUI reads them. */
    weights: (id: string, { dialect, ...more }: RequestOptions & QueryOf<'getFinetuneWeights'> = {}) =>
      file(pathOf(finetunesPath, id, 'weights'), { dialect }, more),
    update: (id: string, change: api.FinetuneChange, more?: RequestOptions) =>
      patch<api.Finetune>(pathOf(finetunesPath, id), change, more),
    /** @param weights a safetensors file: a LoRA or a textual inversion. */
    uploadWeights: (
      id: string,
      weights: Uint8Array | Blob,
      query?: QueryOf<'putFinetuneWeights'>,
      more?: RequestOptions,
    ) => putBytes<api.Finetune>(pathOf(finetunesPath, id, 'weights'), weights, query, more),
    /** Makes one Prompt per Style; the id of a Collection stands for all of its Styles. */
    applyStyles: (id: string, styles: api.StyleToApply[], more?: RequestOptions) =>
      post<api.PartialPrompt[]>(pathOf(finetunesPath, id, 'styles'), styles, more),
  };
}
