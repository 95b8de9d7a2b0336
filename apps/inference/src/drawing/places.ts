import type { Device } from '@app/diffusion';
import { KeyCounts, removeFrom } from '@app/process';
import { Inject, Injectable } from '@nestjs/common';
import type { Engine } from '../engine-client/engine';
import { TaskAbortedError } from '../engine-client/task-errors';
import { Engines } from '../engine-client/engines';

/** How many times as many tasks as there are places free an owner may have. */
const perFreePlace = 2;

/**
 * Tasks, in parts of the engines' places, that a worker has at a time: the pictures of some are encoded while others
 * are drawn.
 */
const tasksPerPlace = 4 / 3;

/** An engine as far as the choice between several depends on it. */
export type PlacedEngine = Pick<Engine, 'device' | 'loadedKeys'>;

/** The engines of a worker, and how many tasks each draws at once. */
export interface PlacedEngines<E> {
  all: readonly E[];
  placesOfEngine: number;
}

/** Needs of a task, of the engine that draws it. */
export interface PlaceRequest {
  /** Key of its model. */
  key: string;
  /** Devices on which its model is known to be of no use. */
  refusedOn?: readonly string[];
}

/** A place on loan: some engine's until the task is known, then that of the engine that draws it. */
export interface Loan<E> {
  /**
   * Chooses the engine; a later call gets what the first one has chosen.
   * @throws TaskAbortedError if none that may draw it has a place free any more
   */
  engineFor(request: PlaceRequest): E;
  /** Twice is the same as once. */
  giveBack(): void;
}

interface Seats<E> {
  engine: E;
  /** Keys of the models of the tasks that have its places. */
  taken: string[];
}

/**
 * The tasks that a worker has, from their claim until their pictures are stored, and who may have more. An owner has at
 * most twice as many as places are left: one alone gets two thirds of them, and however many tasks a few owners have,
 * who has none finds a place. Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches", 1998.
 *
 * A place of an engine is borrowed before a task is claimed, so that no more are claimed than can be drawn. A task that
 * may have ended a worker is drawn alone: a crash ends all engines of the process, so what else is being drawn could be
 * blamed for it, and could be to blame.
 */
@Injectable()
export class Places<E extends PlacedEngine = Engine> {
  private readonly seats: readonly Seats<E>[];
  private readonly placesOfEngine: number;
  private readonly taken = new KeyCounts();
  /** Loans whose engine is not chosen. */
  private open = 0;
  private drawn = 0;
  private isDrawnAlone = false;
  /** Tasks that are about to be drawn, in their order. */
  private readonly waiting: { alone: boolean; start: () => void }[] = [];

  constructor(@Inject(Engines) { all, placesOfEngine }: PlacedEngines<E>) {
    this.seats = all.map((engine) => ({ engine, taken: [] }));
    this.placesOfEngine = placesOfEngine;
  }

  /** Places of all engines. */
  get count(): number {
    return this.seats.length * this.placesOfEngine;
  }

  /** Devices of the engines that have a place free. */
  get freeDevices(): Device[] {
    return this.free.map(({ engine }) => engine.device!);
  }

  /** Keys of the models that are loaded, or about to be, by an engine that has a place free. */
  get loadedKeys(): Set<string> {
    return new Set(this.free.flatMap(({ engine, taken }) => [...engine.loadedKeys, ...taken]));
  }

  /** Whether another task may be claimed. */
  get hasRoom(): boolean {
    const tasks = this.taken.entries().reduce((sum, [, count]) => sum + count, 0);
    return !this.isTakenAlone && tasks < Math.floor(this.count * tasksPerPlace);
  }

  /** Owners who may have no other task here now. Who has none is never among them. */
  get full(): string[] {
    const taken = this.taken.entries();
    const left = taken.reduce((free, [, tasks]) => free - tasks, this.count) - 1;
    return taken.filter(([, tasks]) => tasks + 1 > perFreePlace * left).map(([owner]) => owner);
  }

  /** Counts a task of an owner. @returns what has to be called when its pictures are stored */
  take(owner: string): () => void {
    return this.taken.add(owner);
  }

  /** Takes a place of whichever engine, which has to be given back; undefined when none is free. */
  borrow(): Loan<E> | undefined {
    const taken = this.seats.reduce((sum, each) => sum + each.taken.length, 0);
    if (taken + this.open >= this.count) return undefined;
    this.open++;
    let place: { seats: Seats<E>; key: string } | undefined;
    let isOut = true;
    return {
      engineFor: (request) => (place ??= this.choose(request)).seats.engine,
      giveBack: () => {
        if (!isOut) return;
        isOut = false;
        if (place) removeFrom(place.seats.taken, place.key);
        else this.open--;
      },
    };
  }

  /**
   * Begins to draw a task. One that is drawn alone waits until nothing else is; until it has ended, nothing is claimed,
   * and what was claimed before waits behind it.
   * @returns what has to be called when it is drawn; calling it twice is the same as once
   * @throws TaskAbortedError if `signal` aborts before it has begun
   */
  begin(alone: boolean, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        removeFrom(this.waiting, entry);
        reject(new TaskAbortedError('The task was given up before it was drawn.'));
        this.beginNext();
      };
      const entry = {
        alone,
        start: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(this.begun(alone));
        },
      };
      this.waiting.push(entry);
      signal.addEventListener('abort', giveUp, { once: true });
      this.beginNext();
      if (signal.aborted && this.waiting.includes(entry)) giveUp();
    });
  }

  private begun(alone: boolean): () => void {
    this.drawn++;
    this.isDrawnAlone = alone;
    let isDrawn = true;
    return () => {
      if (!isDrawn) return;
      isDrawn = false;
      this.drawn--;
      if (alone) this.isDrawnAlone = false;
      this.beginNext();
    };
  }

  private beginNext(): void {
    const [next] = this.waiting;
    if (!next || this.isDrawnAlone || (next.alone && this.drawn > 0)) return;
    this.waiting.shift();
    next.start();
    this.beginNext();
  }

  private get isTakenAlone(): boolean {
    return this.isDrawnAlone || this.waiting.some(({ alone }) => alone);
  }

  private get free(): Seats<E>[] {
    return this.seats.filter(({ taken }) => taken.length < this.placesOfEngine);
  }

  private choose(request: PlaceRequest): { seats: Seats<E>; key: string } {
    const seats = this.best(request);
    if (!seats) throw new TaskAbortedError('No engine that may draw the task has a place free.');
    seats.taken.push(request.key);
    this.open--;
    return { seats, key: request.key };
  }

  /**
   * The engine that has the model loaded, or is about to; else the one with most places free. An idle one rather loads
   * the model too than leave half of another's places and more to it. The processor draws only what no GPU has a place
   * for, because it is many times slower.
   */
  private best({ key, refusedOn = [] }: PlaceRequest): Seats<E> | undefined {
    const isRefused = ({ engine }: Seats<E>): boolean => refusedOn.includes(engine.device!);
    // Where no engine can draw it, one has to say why.
    const able = this.free.filter((seats) => !isRefused(seats) || this.seats.every(isRefused));
    const gpus = able.filter(({ engine }) => engine.device !== 'cpu');
    const [freest, ...others] = (gpus.length > 0 ? gpus : able).sort((a, b) => a.taken.length - b.taken.length);
    const loaded = [freest, ...others].find(
      (seats) => seats && (seats.engine.loadedKeys.has(key) || seats.taken.includes(key)),
    );
    if (!loaded) return freest;
    return freest.taken.length === 0 && loaded.taken.length >= this.placesOfEngine / 2 ? freest : loaded;
  }
}
