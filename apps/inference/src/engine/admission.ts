import { rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  AbortError,
  type Device,
  type ModelFolder,
  modelWidths,
  readModelFolder,
  rowsOfTexts,
  StableDiffusionPipeline,
} from '@app/diffusion';
import { LruMap, removeFrom } from '@app/process';
import { type AdaptedModel, Adapters } from './adapters';
import { notAhead } from './batch';
import type { CallTimes } from './call-times';
import { DrawingInProgress, isCanceled, pipelineRequest, type Task } from './drawing';
import type { EngineMessage } from './engine-protocol';
import { bytesPerRow, type CallBytes, decodeBytes, encodeBytes, weightBytes } from './memory';
import type { LoadedModel, Models } from './models';
import type { Turns } from './turns';

/** Folders of models whose description is kept: more than are drawn with in turn. */
const keptFolders = 8;

/** A task that has not begun. */
interface Waiting {
  task: Task;
  /** The drawing itself, if it began before and ran out of memory beside others. */
  previous?: DrawingInProgress | undefined;
  /** What it is drawn with, once its files are read. */
  ready?: { folder: ModelFolder; adapted: AdaptedModel };
}

/** What admission has to know of the engine, and what it tells it. */
export interface AdmissionHost {
  device: Device;
  intraOpNumThreads: number;
  cacheDir: string;
  models: Models;
  turns: Turns;
  times: CallTimes;
  drawings: () => readonly DrawingInProgress[];
  report: (message: EngineMessage) => void;
  begun: (drawing: DrawingInProgress) => void;
  failed: (task: Task, error: unknown) => void;
  /** What follows a failure of something that has no rows. */
  nextTry: (error: unknown, isAlone: boolean) => Promise<'again' | 'alone' | 'end'>;
}

/**
 * The tasks that wait. A task's files are read beside the calls of others, one task at a time; then its model is loaded
 * and its texts are encoded, in the order of owners' turns. One that has no room beside the models in use waits, and who
 * comes after it waits with it, so that it is never overtaken for good.
 */
export class Admission {
  private readonly waiting: Waiting[] = [];
  private readonly adapters: Adapters;
  private readonly folders = new LruMap<ModelFolder>(keptFolders);
  private reading: Promise<void> | undefined;
  /** Key of the model with which a drawing is about to begin. */
  private beginning: string | undefined;

  constructor(private readonly host: AdmissionHost) {
    this.adapters = new Adapters(host.cacheDir);
    void this.adapters.removeLeftovers().catch(() => undefined);
  }

  get size(): number {
    return this.waiting.length;
  }

  get modelInUse(): string | undefined {
    return this.beginning;
  }

  add(task: Task): void {
    this.waiting.push({ task });
  }

  /** Puts a drawing before all that wait, to be drawn again from its start with nothing beside it. */
  addAlone(previous: DrawingInProgress): void {
    this.waiting.unshift({ task: { ...previous.task, alone: true }, previous });
  }

  /** Ends what is canceled. */
  endCanceled(isClosed: boolean): void {
    for (const entry of this.waiting.filter(({ task }) => isClosed || isCanceled(task)))
      this.fail(entry, new AbortError());
  }

  /** Begins what has room now, and begins to read the files of one other. */
  async admit(): Promise<void> {
    const left = new Set(this.waiting);
    while (left.size > 0) {
      const entry = this.nextInTurn(left);
      left.delete(entry);
      if (!entry.ready) this.read(entry);
      else if (entry.task.alone || this.isAnyAlone) {
        if (this.host.drawings().length > 0) return;
        await this.tryToBegin(entry);
      } else if (!this.hasRoom(entry)) return;
      else if (!this.goesLater(entry)) await this.tryToBegin(entry);
    }
  }

  /** Gives so much time to the files that are being read, which are a chain of many small pieces of work. */
  async goOnReading(ms: number): Promise<void> {
    if (!this.reading) return;
    const enough = new AbortController();
    await Promise.race([this.reading, delay(ms, undefined, { signal: enough.signal }).catch(() => undefined)]);
    enough.abort();
  }

  /** Resolves when nothing is read any more. */
  async close(): Promise<void> {
    await this.reading;
  }

  /** What starts again goes first; then the first task of an owner who is not ahead of others. */
  private nextInTurn(left: ReadonlySet<Waiting>): Waiting {
    const entries = [...left].map((entry) => ({ entry, owner: entry.task.owner, lead: 0 }));
    return [...left].find(({ previous }) => previous) ?? notAhead(entries, this.host.turns)[0].entry;
  }

  private get isAnyAlone(): boolean {
    return this.host.drawings().some(({ task }) => task.alone);
  }

  private read(entry: Waiting): void {
    const { task } = entry;
    const folder = this.folders.get(task.model.key);
    if (folder && task.adapters.length === 0) {
      entry.ready = { folder, adapted: { key: task.model.key, uses: [] } };
      return;
    }
    this.reading ??= this.readFiles(entry).finally(() => (this.reading = undefined));
  }

  private async readFiles(entry: Waiting): Promise<void> {
    const { model, adapters, owner, id } = entry.task;
    const startedAt = performance.now();
    this.host.report({ type: 'busy', id });
    try {
      const folder = this.folders.get(model.key) ?? (await readModelFolder(model.folder));
      this.folders.set(model.key, folder);
      entry.ready = { folder, adapted: await this.adapters.adapt(model, folder, adapters) };
    } catch (error) {
      this.fail(entry, error);
    } finally {
      this.host.turns.charge(owner, performance.now() - startedAt);
    }
  }

  private hasRoom({ task, ready }: Waiting): boolean {
    const { folder, adapted } = ready!;
    return this.host.models.hasRoom(adapted.key, weightBytes(folder, this.host.device), leastCalls(folder, task));
  }

  /**
   * Whether its model would be loaded now, and drawings of others end before that would: both times are counted from
   * what their owner has had, so nobody who keeps coming has it wait for longer than it takes itself.
   */
  private goesLater({ task, ready, previous }: Waiting): boolean {
    const { models, turns, times, drawings } = this.host;
    if (previous || models.has(ready!.adapted.key)) return false;
    const overAt = turns.of(task.owner) + times.of('loading');
    return drawings().some(({ owner, msLeft }) => owner !== task.owner && turns.of(owner) + msLeft < overAt);
  }

  private async tryToBegin(entry: Waiting): Promise<void> {
    const startedAt = performance.now();
    this.beginning = entry.ready!.adapted.key;
    try {
      const drawing = await this.begin(entry);
      drawing.computeMs += performance.now() - startedAt;
      removeFrom(this.waiting, entry);
      this.host.begun(drawing);
    } catch (error) {
      const next = isCanceled(entry.task) ? 'end' : await this.host.nextTry(error, entry.task.alone ?? false);
      if (next === 'end') this.fail(entry, error);
      else if (next === 'alone') entry.task = { ...entry.task, alone: true };
    } finally {
      this.beginning = undefined;
      this.host.turns.charge(entry.task.owner, performance.now() - startedAt);
    }
  }

  private async begin({ task, ready, previous }: Waiting): Promise<DrawingInProgress> {
    const { models, times } = this.host;
    const { folder, adapted } = ready!;
    const model = models.get<LoadedModel>(adapted.key) ?? (await this.load(task, folder, adapted));
    await models.reserve(model, { textEncoder: leastCalls(folder, task).textEncoder! });
    const request = { ...pipelineRequest(task.request), adapters: adapted.uses };
    return new DrawingInProgress(task, model, await model.pipeline.prepare(request), times, previous);
  }

  private async load(task: Task, folder: ModelFolder, { key, writeChanged }: AdaptedModel): Promise<LoadedModel> {
    const { models, times, device, intraOpNumThreads } = this.host;
    const startedAt = performance.now();
    const changedWeights = await writeChanged?.();
    const open = () =>
      StableDiffusionPipeline.load(task.model.folder, {
        ...{ device, intraOpNumThreads },
        ...(changedWeights !== undefined && { changedWeights }),
      });
    try {
      return await models.load<LoadedModel>(key, weightBytes(folder, device), open);
    } finally {
      // What is loaded is in memory.
      if (changedWeights !== undefined) await rm(changedWeights, { force: true });
      times.note('loading', performance.now() - startedAt);
    }
  }

  private fail(entry: Waiting, error: unknown): void {
    if (removeFrom(this.waiting, entry)) this.host.failed(entry.task, error);
  }
}

/** The least memory that a task is drawn with: all its texts at once, then one picture at a time, with guidance. */
function leastCalls(folder: ModelFolder, { request }: Task): CallBytes {
  const widths = modelWidths(folder);
  return {
    textEncoder: encodeBytes(widths, rowsOfTexts(request, folder.textEncoders[0].tokens)),
    unet: 2 * bytesPerRow(widths, request),
    vaeDecoder: decodeBytes(widths, request),
  };
}
