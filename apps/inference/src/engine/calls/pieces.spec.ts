import { kindOf, modelWidths, NotFiniteError, OutOfMemoryError, type RgbImage, Trajectory } from '@app/diffusion';
import type { LoadedModel } from '../models/loaded-model';
import { ModelRegistry, type Releasable } from '../models/model-registry';
import { CallTimes } from '../time/call-times';
import { EngineShares } from '../time/engine-shares';
import { wallClocks } from '../time/work-clock';
import { DrawingInProgress } from './drawing-in-progress';
import { Pieces } from './pieces';
import { RowLimits } from './row-limits';

type Scheduler = ConstructorParameters<typeof Trajectory>[5];
type Generator = ConstructorParameters<typeof Trajectory>[6];

const nothing = (): void => undefined;
const steps = 2;
const facts = { widths: modelWidths({ textEncoder: {}, unet: {}, vaeDecoder: {} }) };
const picture: RgbImage = { width: 8, height: 8, data: new Uint8Array(3 * 8 * 8) };

/** Takes a prediction for what it asks for; one with `failing` fails in the middle of a step. */
class FakeScheduler implements Pick<Scheduler, 'timesteps' | 'scaleModelInput' | 'step'> {
  readonly timesteps = new Float64Array(steps);

  constructor(private readonly failing: boolean) {}

  scaleModelInput(sample: Float32Array): Float32Array {
    return sample;
  }

  step(_output: Float32Array, _timestep: number, sample: Float32Array): Float32Array {
    if (this.failing) throw new Error('its scheduler fails');
    return sample;
  }
}

/** A model without graphs, whose calls fail as a test says. */
class FakeModel {
  /** Pictures of each call so far. */
  readonly calls: (readonly Trajectory[])[] = [];
  onStep: (trajectories: readonly Trajectory[]) => unknown = nothing;
  onDecode: (trajectory: Trajectory) => void = nothing;
  readonly pipeline = {
    facts,
    groupOf: kindOf,
    rowsOfCall: (rows: number): number => rows,
    preview: (): RgbImage => picture,
    step: async (trajectories: readonly Trajectory[]): Promise<void> => {
      this.calls.push(trajectories);
      await this.onStep(trajectories);
      for (const each of trajectories) each.scatter(new Float32Array(2 * each.latents.length), 0);
    },
    decode: async (trajectory: Trajectory): Promise<RgbImage> => {
      this.onDecode(trajectory);
      return picture;
    },
  };

  noteDrawn(): void {}

  async release(): Promise<void> {}
}

describe(Pieces.name, () => {
  let drawings: DrawingInProgress[];
  let alone: number[];
  let ended: [id: number, error: string][];
  let decoded: number[];
  let registry: ModelRegistry;
  let model: FakeModel;
  let shares: EngineShares;
  let rowLimits: RowLimits;
  let pieces: Pieces;

  beforeEach(async () => {
    [drawings, alone, ended, decoded] = [[], [], [], []];
    const inUse = () => new Set(drawings.map(({ command }) => command.model.key));
    registry = new ModelRegistry(1, { inUse, awaited: () => new Set() }, nothing, nothing);
    shares = new EngineShares();
    rowLimits = new RowLimits('cpu', { callBytes: () => Infinity, isCheaperPerRow: () => false });
    const remove = (drawing: DrawingInProgress): void => void (drawings = drawings.filter((each) => each !== drawing));
    pieces = new Pieces({
      ...{ registry, rowLimits, shares, report: nothing, clocks: wallClocks, callTimes: new CallTimes() },
      drawings: () => drawings,
      isEnlarging: () => false,
      hasSecondThread: false,
      end: (drawing, error) => [remove(drawing), ended.push([drawing.command.id, (error as Error).message])],
      drawAlone: (drawing) => [remove(drawing), alone.push(drawing.command.id)],
      decoded: ({ command }) => decoded.push(command.id),
    });
    const load = async () => (model = new FakeModel());
    await registry.get('model', async () => ({ bytes: 1, load }));
    // Owners keep what they have had while another draws.
    shares.enter('steady');
  });

  /** A drawing of guided pictures, whose scheduler may fail. */
  function begin(id: number, { count = 1, failing = false } = {}): DrawingInProgress {
    const drawn = { key: 'model', name: 'model', folder: 'no folder', hash: '' };
    const request = {
      ...{ prompt: 'a circle', negativePrompt: null, guidanceScale: 7.5, numInferenceSteps: steps, seed: id },
      ...{ numImages: count, scheduler: null, width: 8, height: 8, promptWeighting: false },
    };
    const cancel = new SharedArrayBuffer(4);
    const prompt = { chunks: 1, tokens: 77, rows: [new Float32Array(1), new Float32Array(1)] };
    const trajectories = Array.from({ length: count }, (_, seed) => {
      const scheduler = new FakeScheduler(failing) as Partial<Scheduler> as Scheduler;
      return new Trajectory(seed, [1, 1, 1], new Float32Array(1), prompt, 7.5, scheduler, {} as Generator);
    });
    const command = { type: 'draw', id, owner: `${id}`, model: drawn, request, cancel } as const;
    const drawing = new DrawingInProgress(command, model as object as LoadedModel, trajectories);
    drawings.push(drawing);
    return drawing;
  }

  const step = (...drawn: readonly DrawingInProgress[]): Promise<void> =>
    pieces.step(drawn.map((candidate) => ({ candidate, pictures: candidate.pictures })));
  const most = (drawing: DrawingInProgress): number => rowLimits.of(drawing.kind, drawing);
  const stepsOf = (...drawn: readonly DrawingInProgress[]): number[] => drawn.map(({ progress }) => progress.step);
  const failWith = (error: Error) => (): never => {
    throw error;
  };
  const graphFails = failWith(new Error('a graph fails'));
  const outOfMemory = failWith(new OutOfMemoryError('no memory'));

  describe('step', () => {
    it('moves each picture on, and charges each owner its rows’ part', async () => {
      const [one, two] = [begin(1), begin(2, { count: 3 })];
      await step(one, two);
      expect(stepsOf(one, two)).toEqual([1, 1]);
      expect(model.calls.map(({ length }) => length)).toEqual([4]);
      expect(shares.of('2')).toBeCloseTo(3 * shares.of('1'), 6);
    });

    it('halves the rows of a call that ran out of memory, and ends nobody', async () => {
      const [one, two] = [begin(1, { count: 2 }), begin(2, { count: 2 })];
      model.onStep = outOfMemory;
      await step(one, two);
      expect([most(one), stepsOf(one, two), ended, alone]).toEqual([4, [0, 0], [], []]);
      expect([one.suspicion, one.underWay.size]).toEqual([undefined, 0]);
    });

    it('releases idle models for one picture that ran out of memory, then draws it alone, then ends it', async () => {
      const [one, two] = [begin(1), begin(2)];
      model.onStep = async () => {
        await registry.get('idle', async () => ({ bytes: 1, load: async () => new FakeModel() }));
        outOfMemory();
      };
      await step(one);
      model.onStep = outOfMemory;
      expect([registry.has('idle'), ended, alone]).toEqual([false, [], []]);
      await step(one);
      expect([ended, alone]).toEqual([[], [1]]);
      await step(two);
      expect([ended, alone]).toEqual([[[2, 'no memory']], [1]]);
    });

    it('has the drawings of a failed call tried alone, so that it ends only the one at fault', async () => {
      const [one, two] = [begin(1), begin(2)];
      const [atFault] = two.trajectories;
      model.onStep = (trajectories) => trajectories.includes(atFault) && graphFails();
      await step(one, two);
      expect([one.suspicion, two.suspicion, ended]).toEqual([{ mostRows: Infinity }, { mostRows: Infinity }, []]);
      for (const each of [one, two]) await step(each);
      expect([one.suspicion, ended, stepsOf(one), most(one)]).toEqual([undefined, [[2, 'a graph fails']], [1], 16]);
    });

    it('halves the rows where calls fail together, and each drawing goes well alone', async () => {
      const [one, two] = [begin(1), begin(2)];
      model.onStep = (trajectories) => trajectories.length > 1 && failWith(new Error('too many rows'))();
      await step(one, two);
      expect(most(one)).toBe(16);
      for (const each of [one, two]) await step(each);
      await step(one, two);
      expect([most(one), ended]).toEqual([2, []]);
    });

    it('lowers the limit of rows no further for a drawing that fails with one picture as with all', async () => {
      const [one, two] = [begin(1, { count: 8 }), begin(2, { count: 4 })];
      model.onStep = outOfMemory;
      await step(one);
      model.onStep = graphFails;
      await step(two);
      expect([most(one), two.suspicion?.mostRows, ended]).toEqual([8, 4, []]);
      await pieces.step([{ candidate: two, pictures: two.pictures.slice(0, 1) }]);
      expect([most(one), ended]).toEqual([8, [[2, 'a graph fails']]]);
    });

    it('has a drawing that fails tried with half of its own rows, so that it leaves no limit if it is given up', async () => {
      const [one, two] = [begin(1), begin(2, { count: 8 })];
      model.onStep = graphFails;
      await step(two);
      expect([two.suspicion, most(one), ended]).toEqual([{ mostRows: 8 }, 16, []]);
    });

    it('keeps a limit of rows that has helped, whatever fails later', async () => {
      const drawing = begin(1, { count: 4 });
      model.onStep = failWith(new Error('too many rows'));
      await step(drawing);
      model.onStep = nothing;
      const [first] = drawing.pictures;
      await pieces.step([{ candidate: drawing, pictures: [first] }]);
      model.onStep = graphFails;
      await pieces.step([{ candidate: drawing, pictures: [first] }]);
      expect([most(drawing), ended]).toEqual([4, [[1, 'a graph fails']]]);
    });

    it('learns nothing of a failure from a call that began before it, in another lane', async () => {
      const drawing = begin(1, { count: 3 });
      const [first, ...others] = drawing.pictures;
      let finish = nothing;
      const untilFinished = () => new Promise<void>((resolve) => (finish = resolve));
      model.onStep = ([trajectory]) => (trajectory === first.trajectory ? untilFinished() : graphFails());
      const before = pieces.step([{ candidate: drawing, pictures: [first] }]);
      await pieces.step([{ candidate: drawing, pictures: others }]);
      finish();
      await before;
      expect([drawing.suspicion, most(drawing), stepsOf(drawing)]).toEqual([{ mostRows: 2 }, 16, [0]]);
    });

    it('ends the one whose numbers are not finite, and leaves the rows of the others as they are', async () => {
      const [one, two] = [begin(1, { count: 2 }), begin(2, { count: 2 })];
      const [atFault] = two.trajectories;
      model.onStep = (trajectories) => trajectories.includes(atFault) && failWith(new NotFiniteError('U-Net'))();
      await step(one, two);
      for (const each of [two, one]) await step(each);
      expect([ended.map(([id]) => id), stepsOf(one), most(one)]).toEqual([[2], [1], 16]);
    });

    it('has what a scheduler’s failure has spoilt drawn anew alone, and the others go on', async () => {
      const [one, two] = [begin(1), begin(2, { failing: true })];
      await step(one, two);
      expect([alone, ended, drawings, stepsOf(one)]).toEqual([[2], [], [one], [1]]);
    });

    it('ends what is spoilt although it is drawn alone', async () => {
      const drawing = begin(1, { failing: true });
      Object.assign(drawing.command, { alone: true });
      await step(drawing);
      expect([alone, ended]).toEqual([[], [[1, 'its scheduler fails']]]);
    });
  });

  describe('decode', () => {
    it('ends only the drawing whose picture is none', async () => {
      const [one, two] = [begin(1), begin(2)];
      const [atFault] = one.trajectories;
      model.onDecode = (trajectory) => trajectory === atFault && failWith(new NotFiniteError('VAE decoder'))();
      for (const drawing of [one, two]) await pieces.decode(drawing, drawing.trajectories[0]);
      expect([ended.map(([id]) => id), decoded, drawings]).toEqual([[1], [2], [two]]);
    });
  });

  describe('drawings that are given up', () => {
    /** A step that waits for room until another model is loaded. @returns ends the loading */
    async function waitingStep(...drawn: readonly DrawingInProgress[]) {
      let finish: (other: Releasable) => void = nothing;
      let begins: () => void = nothing;
      const begun = new Promise<void>((resolve) => (begins = resolve));
      const load = () => new Promise<Releasable>((resolve) => [(finish = resolve), begins()]);
      const loaded = registry.get('other', async () => ({ bytes: 1, load }));
      await begun;
      const stepped = step(...drawn);
      return async (): Promise<void> => {
        finish(new FakeModel());
        await loaded;
        await stepped;
      };
    }

    it('make no call if that is while it waits for room, and leave the limit of rows as it is', async () => {
      const [one, two] = [begin(1), begin(2)];
      const load = await waitingStep(one, two);
      drawings = [];
      // Nobody draws with it, so making room releases the model itself.
      await load();
      expect([model.calls, most(one), one.underWay.size]).toEqual([[], 16, 0]);
    });

    it('are not charged for the call that is made for the others', async () => {
      const [one, two] = [begin(1), begin(2)];
      const load = await waitingStep(one, two);
      drawings = [two];
      await load();
      expect([model.calls.length, stepsOf(one, two), shares.of('1')]).toEqual([1, [0, 1], 0]);
      expect(shares.of('2')).toBeGreaterThan(0);
    });

    it('teach nothing about rows if the call fails when nobody wants it any more', async () => {
      const [one, two] = [begin(1), begin(2)];
      model.onStep = () => [(drawings = []), outOfMemory()];
      await step(one, two);
      expect(most(one)).toBe(16);
      drawings = [one, two];
      model.onStep = outOfMemory;
      await step(one, two);
      expect(most(one)).toBe(2);
    });
  });
});
