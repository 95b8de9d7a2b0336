import type { Device } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import { Engines } from '../engine-client/engines';

/** An engine as far as the choice between several depends on it. */
export type SlottedEngine = Pick<Engine, 'device' | 'loadedKeys'>;

/** The engines of a worker, and how many tasks each draws at once. */
export interface SlottedEngines<E> {
  all: readonly E[];
  slotsOfEngine: number;
}

/** Needs of a task, of the engine that draws it. */
export interface SlotRequest {
  key: string;
  refusedOn?: readonly string[];
}

/** A slot: some engine's until the task is known, then one of the engine that draws it. */
export interface Slot<E = Engine> {
  /**
   * Chooses the engine; a later call gets what the first one has chosen.
   * @throws TaskAbortedError if none that may draw it has a slot free any more
   */
  engineFor: (request: SlotRequest) => E;
  /** Twice is the same as once. */
  giveBack: () => void;
}

interface EngineTasks<E> {
  engine: E;
  /** Keys of the models of the tasks that have its slots. */
  taken: string[];
}

/**
 * The slots of the engines. One is taken before a task is claimed, so that no more are claimed than can be drawn; which
 * engine's it is, is chosen when the task is known.
 */
@Injectable()
export class EngineSlots<E extends SlottedEngine = Engine> {
  private readonly engines: readonly EngineTasks<E>[];
  private readonly slotsOfEngine: number;
  /** Slots whose engine is not chosen. */
  private unassigned = 0;

  constructor(@Inject(Engines) { all, slotsOfEngine }: SlottedEngines<E>) {
    this.engines = all.map((engine) => ({ engine, taken: [] }));
    this.slotsOfEngine = slotsOfEngine;
  }

  get count(): number {
    return this.engines.length * this.slotsOfEngine;
  }

  get freeDevices(): Device[] {
    return this.free.map(({ engine }) => engine.device!);
  }

  /** Keys of the models that are loaded, or about to be, by an engine that has a slot free. */
  get loadedKeys(): Set<string> {
    return new Set(this.free.flatMap(({ engine, taken }) => [...engine.loadedKeys, ...taken]));
  }

  /** Takes a slot of whichever engine, which has to be given back; undefined when none is free. */
  take(): Slot<E> | undefined {
    const taken = this.engines.reduce((sum, each) => sum + each.taken.length, 0);
    if (taken + this.unassigned >= this.count) return undefined;
    this.unassigned++;
    let chosen: { of: EngineTasks<E>; key: string } | undefined;
    let isOut = true;
    return {
      engineFor: (request) => (chosen ??= this.choose(request)).of.engine,
      giveBack: () => {
        if (!isOut) return;
        isOut = false;
        if (chosen) removeFrom(chosen.of.taken, chosen.key);
        else this.unassigned--;
      },
    };
  }

  private get free(): EngineTasks<E>[] {
    return this.engines.filter(({ taken }) => taken.length < this.slotsOfEngine);
  }

  private choose(request: SlotRequest): { of: EngineTasks<E>; key: string } {
    const of = this.best(request);
    if (!of) throw new TaskAbortedError('No engine that may draw the task has a slot free.');
    of.taken.push(request.key);
    this.unassigned--;
    return { of, key: request.key };
  }

  /**
   * The engine that has the model loaded, or is about to; else the one with most slots free. An idle engine loads the
   * model too if the one that has it is half full. The processor draws only what no GPU has a slot for, because it is
   * many times slower.
   */
  private best({ key, refusedOn = [] }: SlotRequest): EngineTasks<E> | undefined {
    const isRefused = ({ engine }: EngineTasks<E>): boolean => refusedOn.includes(engine.device!);
    // If all engines have refused its model, one gets the task all the same, to say why.
    const able = this.free.filter((each) => !isRefused(each) || this.engines.every(isRefused));
    const gpus = able.filter(({ engine }) => engine.device !== 'cpu');
    const [freest, ...others] = (gpus.length > 0 ? gpus : able).sort((a, b) => a.taken.length - b.taken.length);
    const loaded = [freest, ...others].find(
      (each) => each && (each.engine.loadedKeys.has(key) || each.taken.includes(key)),
    );
    if (!loaded) return freest;
    return freest.taken.length === 0 && loaded.taken.length >= this.slotsOfEngine / 2 ? freest : loaded;
  }
}
