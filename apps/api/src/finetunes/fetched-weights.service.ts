import { PassThrough } from 'node:stream';
import { type Config, CONFIG } from '@app/config';
import {
  BodyTooLargeError,
  DomainError,
  isIdentifier,
  limits,
  MalformedBodyError,
  problemAt,
  refusedAddress,
  refusedHost,
  UnprocessableError,
} from '@app/domain';
import { type RemoteBody, RemoteError, RemoteFiles } from '@app/remote';
import { type TaskHold, Trainings, type WeightsTask } from '@app/tasks';
import { Inject, Injectable } from '@nestjs/common';
import { StoredFiles } from '../files/stored-files';
import { UploadStalledError } from '../http/receive-file';
import { FinetuneWeightsService } from './finetune-weights.service';
import { FinetunesService } from './finetunes.service';

const timeMinutes = 10;
/** Those of a hub lead to its store, some by way of a renamed repository. Each key fetches one file at a time. */
const remoteLimits = {
  ...{ maxBytes: limits.weightsBytes, timeMs: timeMinutes * 60_000, maxRedirects: 5, perOwner: 1 },
  headers: { 'User-Agent': 'darkroom-weights', Accept: '*/*' },
};

/** Weights that a request names by their URL, received as those that a caller sends. */
@Injectable()
export class FetchedWeights {
  private readonly remote: RemoteFiles;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly finetunes: FinetunesService,
    private readonly weights: FinetuneWeightsService,
    private readonly trainings: Trainings,
    private readonly files: StoredFiles,
  ) {
    this.remote = new RemoteFiles(config.picturesAllowPrivate, remoteLimits);
  }

  /** @throws UnprocessableError for a literal private address, and for one of this service that has no weights */
  assertAllowed(url: string): void {
    const own = this.ownFinetune(url);
    if (own === null)
      throw refused(
        'is of this service, and only `/v1/finetunes/{id}/weights` of a Fine-Tune of yours has weights here',
      );
    if (own === undefined && refusedHost(url) && !this.config.picturesAllowPrivate)
      throw refused(
        `is at ${refusedAddress}, from which nothing is fetched unless the operator sets PICTURES_ALLOW_PRIVATE; send the file with PUT /v1/finetunes/{id}/weights`,
      );
  }

  /**
   * Fetches the file, checks it, and gives it to the Fine-Tune of a claimed task.
   * @throws RemoteError; DomainError for a file that is not accepted, or cannot be now; what ends the hold
   */
  async fetch(task: WeightsTask, hold: TaskHold): Promise<void> {
    const { id, ownerId, accountId } = task;
    const finetune = await this.finetunes.load(accountId, id);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), remoteLimits.timeMs);
    const signal = AbortSignal.any([hold.signal, late.signal]);
    // Its end tells the uploads that nobody waits for the file any more.
    const answer = new PassThrough();
    try {
      const { stream, bytes } = await this.open(task, signal);
      const giveUp = (): void => {
        stream.destroy();
        answer.destroy();
      };
      signal.addEventListener('abort', giveUp);
      // A connection that breaks before anybody reads must not end the process.
      stream.on('error', () => undefined);
      if (signal.aborted) giveUp();
      const file = {
        ...{ begin: () => stream, assertBare: () => undefined, answer },
        ...(bytes !== undefined && { declaredBytes: bytes }),
        noteHash: (hash: string) => {
          clearTimeout(timer);
          if (hash !== (task.weightsSha256 ?? hash)) throw new RemoteError('has not the SHA-256 in `weights_sha256`');
        },
      };
      await this.weights.receive({ ownerId, finetune, scale: 1 }, file, async (weights) => {
        hold.signal.throwIfAborted();
        if (await this.trainings.settle(task, { weights, computeSeconds: 0, note: null })) return;
        await this.files.removeAll([weights.key]);
        hold.lose();
      });
    } catch (error) {
      hold.signal.throwIfAborted();
      throw late.signal.aborted ? new RemoteError(`took longer than ${timeMinutes} minutes to come`) : asRemote(error);
    } finally {
      clearTimeout(timer);
      late.abort();
      answer.destroy();
    }
  }

  private async open({ ownerId, accountId, weightsUrl }: WeightsTask, signal: AbortSignal): Promise<RemoteBody> {
    const id = this.ownFinetune(weightsUrl);
    if (typeof id !== 'string') return this.remote.open(ownerId, weightsUrl, signal);
    const file = await this.weights.read(accountId, id).catch(orNotThere);
    return file.open().catch(orNotThere);
  }

  /** Id of the Fine-Tune whose weights a URL of this service names; null for another of its URLs. */
  private ownFinetune(url: string): string | null | undefined {
    const [ours, sent] = [URL.parse(this.config.publicUrl), URL.parse(url)];
    if (!ours || ours.origin !== sent?.origin) return undefined;
    const path = sent.pathname.slice(ours.pathname.replace(/\/$/, '').length);
    const [, id = ''] = /^\/v1\/finetunes\/([\w-]+)\/weights$/.exec(path) ?? [];
    return isIdentifier(id) ? id : null;
  }
}

function refused(why: string): UnprocessableError {
  return new UnprocessableError('WeightsAddressRefused', ...problemAt('/weights_url', why));
}

function orNotThere(error: unknown): never {
  if (error instanceof DomainError && error.kind === 'notFound')
    throw new RemoteError('is not there: no Fine-Tune of yours has weights at this URL, or not any more');
  throw error;
}

/** What is said to a sender about its request, in words about a file. */
function asRemote(error: unknown): unknown {
  if (error instanceof BodyTooLargeError)
    return new RemoteError(`has more than ${Math.round(limits.weightsBytes / 1e6)} MB`);
  if (error instanceof MalformedBodyError)
    return new RemoteError('is empty, or broke off on its way', { mayPass: true });
  if (error instanceof UploadStalledError) return new RemoteError('stopped coming', { mayPass: true });
  return error;
}
