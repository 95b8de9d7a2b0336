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
  requiresCuda: boolean;
  /** Devices on which its model is known to be of no use. */
  refusedOn?: readonly string[];
}

/** A place on loan: some engine's until the task is known, then that of the engine that draws it. */
export interface Loan<E> {
  /**
   * Chooses the engine. Resolves when it has a place; the first call decides, and a later one gets what that has
   * chosen.
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

interface Choosing<E> {
  request: PlaceRequest;
  found: (seats: Seats<E>) => void;
}

/** The places of all engines. One is taken before a task is claimed, so that no more are claimed than can be drawn. */
export class EnginePlaces<E extends PlacedEngine> {
  private readonly seats: readonly Seats<E>[];
  /** Loans whose engine is not chosen. */
  private open = 0;
  private readonly borrowing: (() => void)[] = [];
  private readonly choosing: Choosing<E>[] = [];

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
    return this.seats.filter((seats) => this.hasPlace(seats)).map(({ device }) => device);
  }

  /** Keys of the models that are loaded, or about to be, by an engine that has a place free. */
  get loadedKeys(): Set<string> {
    const able = this.seats.filter((seats) => this.hasPlace(seats));
    return new Set(able.flatMap(({ engine, taken }) => [...engine.loadedKeys, ...taken]));
  }

  /**
   * Takes a place of whichever engine; undefined when none is free within `timeoutMs`. What is
   * borrowed has to be given back.
   */
  async borrow(timeoutMs: number): Promise<Loan<E> | undefined> {
    if (this.hasOpenPlace) this.open++;
    else if (!(await this.nextFree(timeoutMs))) return undefined;
    /** A place, and the key of the model that it was taken for. */
    let taken: { seats: Seats<E>; key: string } | undefined;
    /** The choice of the engine. Nobody makes a second one: it would take another place, which is never given back. */
    let choice: Promise<E> | undefined;
    const take = async (request: PlaceRequest, signal?: AbortSignal): Promise<E> => {
      taken = { seats: await this.waitForSeats(request, signal), key: request.key };
      return taken.seats.engine;
    };
    let isOut = true;
    return {
      engineFor: (request, signal) =>
        (choice ??= take(request, signal).catch((error: Error) => {
          choice = undefined;
          throw error;
        })),
      giveBack: () => {
        if (!isOut) return;
        isOut = false;
        if (taken) removeFrom(taken.seats.taken, taken.key);
        else this.open--;
        this.serve();
      },
    };
  }

  private get hasOpenPlace(): boolean {
    return this.seats.reduce((free, { taken }) => free + this.placesOfEngine - taken.length, 0) > this.open;
  }

  private hasPlace({ taken }: Seats<E>): boolean {
    return taken.length < this.placesOfEngine;
  }

  private nextFree(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const take = (): void => {
        clearTimeout(timer);
        this.open++;
        resolve(true);
      };
      const timer = setTimeout(() => {
        removeFrom(this.borrowing, take);
        resolve(false);
      }, timeoutMs);
      this.borrowing.push(take);
    });
  }

  private waitForSeats(request: PlaceRequest, signal?: AbortSignal): Promise<Seats<E>> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        removeFrom(this.choosing, entry);
        reject(new DrawingAbortedError('The task was given up before an engine had a place for it.'));
      };
      const entry = {
        request,
        found: (seats: Seats<E>) => (signal?.removeEventListener('abort', giveUp), resolve(seats)),
      };
      if (signal?.aborted) return giveUp();
      signal?.addEventListener('abort', giveUp, { once: true });
      this.choosing.push(entry);
      this.serve();
    });
  }

  /**
   * Gives free places to those who wait for them: tasks first, in order, each as soon as an engine
   * that can draw it has one.
   */
  private serve(): void {
    for (const entry of [...this.choosing]) {
      const seats = this.best(entry.request);
      if (!seats) continue;
      removeFrom(this.choosing, entry);
      seats.taken.push(entry.request.key);
      this.open--;
      entry.found(seats);
    }
    while (this.hasOpenPlace && this.borrowing.length > 0) this.borrowing.shift()!();
  }

  /**
   * The engine that has the model loaded, or is about to; else the one with most places free. An idle one rather loads
   * the model too than leave half of another's places and more to it. The processor draws only what no GPU has a place
   * for, because it is many times slower.
   */
  private best({ key, requiresCuda, refusedOn = [] }: PlaceRequest): Seats<E> | undefined {
    const isFit = ({ device }: Seats<E>): boolean =>
      (!requiresCuda || device.startsWith('cuda:')) && !refusedOn.includes(device);
    // Where no engine can draw it, one has to say why.
    const fitting = this.seats.some(isFit) ? this.seats.filter(isFit) : this.seats;
    const able = fitting.filter((seats) => this.hasPlace(seats));
    const gpus = able.filter(({ device }) => device !== 'cpu');
    const [freest, ...others] = (gpus.length > 0 ? gpus : able).sort((a, b) => a.taken.length - b.taken.length);
    const loaded = [freest, ...others].find(
      (seats) => seats && (seats.engine.loadedKeys.has(key) || seats.taken.includes(key)),
    );
    if (!loaded) return freest;
    return freest.taken.length === 0 && loaded.taken.length >= this.placesOfEngine / 2 ? freest : loaded;
  }
}
