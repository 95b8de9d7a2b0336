import type { Device } from '@app/diffusion';
import { removeFrom } from '@app/process';
import { DrawingAbortedError } from './engine-errors';

/** An engine as far as the choice between several depends on it. */
export interface PlacedEngine {
  /** Keys of the models that it has loaded. */
  readonly loadedKeys: ReadonlySet<string>;
}

/** What a task asks of the engine that draws it. */
export interface PlaceRequest {
  /** Key of its model. */
  key: string;
  /** Devices on which its model is known to be of no use. */
  refusedOn?: readonly string[];
}

/** A place on loan: some engine's until the task is known, then that of the engine that draws it. */
export interface Loan<E> {
  /**
   * Chooses the engine. Resolves when it has a place; a later call gets what the first one has chosen.
   * @throws DrawingAbortedError if `signal` aborts before that
   */
  engineFor(request: PlaceRequest, signal?: AbortSignal): Promise<E>;
  /** Twice is the same as once. */
  giveBack(): void;
}

interface Seats<E> {
  engine: E;
  device: Device;
  /** Keys of the models of the tasks that have its places. */
  taken: string[];
}

/** The places of all engines. One is taken before a task is claimed, so that no more are claimed than can be drawn. */
export class EnginePlaces<E extends PlacedEngine> {
  private readonly seats: readonly Seats<E>[];
  /** Loans whose engine is not chosen. */
  private open = 0;
  /** Tasks whose engine has no place free yet. */
  private readonly waiting: { request: PlaceRequest; found: (seats: Seats<E>) => void }[] = [];

  constructor(
    engines: ReadonlyMap<Device, E>,
    private readonly placesOfEngine: number,
  ) {
    this.seats = [...engines].map(([device, engine]) => ({ engine, device, taken: [] }));
  }

  /** Places of all engines. */
  get count(): number {
    return this.seats.length * this.placesOfEngine;
  }

  /** Devices of the engines that have a place free. */
  get freeDevices(): Device[] {
    return this.free.map(({ device }) => device);
  }

  /** Keys of the models that are loaded, or about to be, by an engine that has a place free. */
  get loadedKeys(): Set<string> {
    return new Set(this.free.flatMap(({ engine, taken }) => [...engine.loadedKeys, ...taken]));
  }

  /** Takes a place of whichever engine, which has to be given back; undefined when none is free. */
  borrow(): Loan<E> | undefined {
    const taken = this.seats.reduce((sum, each) => sum + each.taken.length, 0);
    if (taken + this.open >= this.count) return undefined;
    this.open++;
    let place: { seats: Seats<E>; key: string } | undefined;
    // Nobody makes a second choice: it would take another place, which is never given back.
    let choice: Promise<E> | undefined;
    let isOut = true;
    const choose = async (request: PlaceRequest, signal?: AbortSignal): Promise<E> => {
      place = { seats: await this.seatsFor(request, signal), key: request.key };
      return place.seats.engine;
    };
    return {
      engineFor: (request, signal) =>
        (choice ??= choose(request, signal).catch((error: Error) => {
          choice = undefined;
          throw error;
        })),
      giveBack: () => {
        if (!isOut) return;
        isOut = false;
        if (place) removeFrom(place.seats.taken, place.key);
        else this.open--;
        this.serve();
      },
    };
  }

  private get free(): Seats<E>[] {
    return this.seats.filter(({ taken }) => taken.length < this.placesOfEngine);
  }

  private seatsFor(request: PlaceRequest, signal?: AbortSignal): Promise<Seats<E>> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        removeFrom(this.waiting, entry);
        reject(new DrawingAbortedError('The task was given up before an engine had a place for it.'));
      };
      const found = (seats: Seats<E>): void => (signal?.removeEventListener('abort', giveUp), resolve(seats));
      const entry = { request, found };
      if (signal?.aborted) return giveUp();
      signal?.addEventListener('abort', giveUp, { once: true });
      this.waiting.push(entry);
      this.serve();
    });
  }

  /** Gives free places to those who wait for them, in order, each as soon as an engine that can draw it has one. */
  private serve(): void {
    for (const entry of [...this.waiting]) {
      const seats = this.best(entry.request);
      if (!seats) continue;
      removeFrom(this.waiting, entry);
      seats.taken.push(entry.request.key);
      this.open--;
      entry.found(seats);
    }
  }

  /**
   * The engine that has the model loaded, or is about to; else the one with most places free. An idle one rather loads
   * the model too than leave half of another's places and more to it. The processor draws only what no GPU has a place
   * for, because it is many times slower.
   */
  private best({ key, refusedOn = [] }: PlaceRequest): Seats<E> | undefined {
    // Where no engine can draw it, one has to say why.
    const isRefused = this.seats.every(({ device }) => refusedOn.includes(device));
    const able = this.free.filter(({ device }) => isRefused || !refusedOn.includes(device));
    const gpus = able.filter(({ device }) => device !== 'cpu');
    const [freest, ...others] = (gpus.length > 0 ? gpus : able).sort((a, b) => a.taken.length - b.taken.length);
    const loaded = [freest, ...others].find(
      (seats) => seats && (seats.engine.loadedKeys.has(key) || seats.taken.includes(key)),
    );
    if (!loaded) return freest;
    return freest.taken.length === 0 && loaded.taken.length >= this.placesOfEngine / 2 ? freest : loaded;
  }
}
