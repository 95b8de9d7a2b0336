import { AbortError } from '@app/diffusion';
import { FairTurns } from '@app/process';
import { type DrawCommand, isAborted } from '../calls/drawing-in-progress';
import type { EngineShares } from '../time/engine-shares';
import { describePipeline, type DrawingModelSpec, type LoadingOptions } from '../models/model-loading';
import { MergeGoneError } from '../models/merge-cache';

/** What finding out what a model takes has to know of the engine, and what it tells it. */
export interface DescriptionHost {
  /** Merging is its owner's, also where it fails. */
  shares: Pick<EngineShares, 'chargeFor'>;
  /** @throws AbortError if the engine is to end */
  throwIfClosed(): void;
  /** Its model is being merged or loaded. */
  busy(command: DrawCommand): void;
}

/** What a model takes, as far as it is known. */
interface Description {
  spec: Promise<DrawingModelSpec>;
  /** Whether `spec` is known, or known to have failed. */
  isOver: boolean;
}

/**
 * What a model takes is not known, or not any more: a command has only to wait until that is found out. Nothing is at
 * fault.
 */
export class NotDescribedError extends Error {
  override readonly name = 'NotDescribedError';
}

/**
 * How often a merge may be deleted before it is loaded, in one try of the tasks that wait for it. Then their drawings
 * break, as with any other trouble of this machine: the tasks are tried again later, and not without end.
 */
const mostLosses = 5;

/**
 * What the models of waiting commands take. A Fine-Tune is merged for that, so it is found out once for all commands of
 * an owner that wait for the same model, one model at a time and owners in turns.
 */
export class ModelDescriptions {
  private readonly descriptions = new Map<string, Description>();
  /** How often the merge of a model was deleted before it was loaded, while commands waited for it. */
  private readonly losses = new Map<string, number>();
  private readonly merging = new FairTurns({ perKey: Infinity, total: Infinity });
  private merge: { owner: string; end: Promise<unknown> } | undefined;

  /** @param waiting the commands for which models are described */
  constructor(
    private readonly options: LoadingOptions,
    private readonly host: DescriptionHost,
    private readonly waiting: () => readonly DrawCommand[],
  ) {}

  /** What is known of a command's model; undefined if nobody has asked for it. */
  known(command: DrawCommand): Description | undefined {
    return this.descriptions.get(nameOf(command));
  }

  /**
   * Finds out what the model of a command takes, unless that was begun before.
   * @throws NotDescribedError, later, if a merge is gone: it is begun anew for whoever asks then; else what
   * `describePipeline` throws, a `MergeGoneError` only if that happens again and again
   */
  of(command: DrawCommand): Promise<DrawingModelSpec> {
    const known = this.known(command);
    if (known) return known.spec;
    const describe = () => this.describe(command);
    const spec = command.model.weights ? this.merging.run(command.owner, describe) : describe();
    const description = { spec, isOver: false };
    const over = () => void (description.isOver = true);
    spec.then(over, over);
    this.descriptions.set(nameOf(command), description);
    return spec;
  }

  /**
   * What the model of a command takes, without waiting for another's.
   * @throws NotDescribedError if that is not known, or the merged model has made room on the disk for another since:
   * `of` finds it out anew. A `MergeGoneError` if that happens again and again. Loading it throws the same.
   */
  async kept(command: DrawCommand): Promise<DrawingModelSpec> {
    const known = this.known(command);
    if (!known?.isOver) throw new NotDescribedError('The model is not described.');
    const spec = await known.spec;
    const load = async () => {
      const model = await this.noticingLoss(command, spec.load);
      this.losses.delete(nameOf(command));
      return model;
    };
    return this.noticingLoss(command, async () => {
      if (await spec.markUsed()) return { ...spec, load };
      throw new MergeGoneError('The merged model is gone.');
    });
  }

  /** Whose merge goes on now. */
  get mergingOwner(): string | undefined {
    return this.merge?.owner;
  }

  /** Leaves the thread to the merge that goes on, until it ends or this time is over. */
  async letMerge(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const isOver = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([this.merge?.end, isOver]);
    clearTimeout(timer);
  }

  /** Forgets the models for which no command waits. */
  forgetUnwanted(): void {
    const wanted = new Set(this.waiting().map(nameOf));
    for (const known of [this.descriptions, this.losses])
      for (const name of known.keys()) if (!wanted.has(name)) known.delete(name);
  }

  /** Does something with a merge, and forgets what it takes if it is gone, unless that has happened too often. */
  private async noticingLoss<T>(command: DrawCommand, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof MergeGoneError)) throw error;
      const name = nameOf(command);
      const times = (this.losses.get(name) ?? 0) + 1;
      this.losses.set(name, times);
      if (times >= mostLosses)
        throw new MergeGoneError(`The merged model was deleted ${times} times before it was loaded.`, { cause: error });
      this.descriptions.delete(name);
      throw new NotDescribedError(error.message, { cause: error });
    }
  }

  private async describe(command: DrawCommand): Promise<DrawingModelSpec> {
    const name = nameOf(command);
    const throwIfAborted = (): void => {
      this.host.throwIfClosed();
      const wants = this.waiting().find((each) => nameOf(each) === name && !isAborted(each));
      if (wants) return this.host.busy(wants);
      // Whoever asks from now on does not get this error.
      this.descriptions.delete(name);
      throw new AbortError();
    };
    throwIfAborted();
    const options = { ...this.options, owner: command.owner, signal: { throwIfAborted } };
    const merge = () => describePipeline(command.model, options);
    const spec = this.noticingLoss(command, () => this.host.shares.chargeFor(command.owner, merge));
    if (!command.model.weights) return spec;
    const noLonger = () => void (this.merge = undefined);
    this.merge = { owner: command.owner, end: spec.then(noLonger, noLonger) };
    return spec;
  }
}

/** Owners do not share a description, because it would wait among the merges of one of them. */
function nameOf({ owner, model }: DrawCommand): string {
  return `${model.key}\n${owner}`;
}
