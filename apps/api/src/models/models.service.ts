import { type Config, CONFIG } from '@app/config';
import { inOneLine } from '@app/diffusion/files';
import {
  defaults,
  DomainError,
  type ErrorCode,
  type FieldProblem,
  invalidAt,
  limits,
  problemAt,
  UnprocessableError,
} from '@app/domain';
import type { ModelDto, OpenaiModelDto, OpenaiModelsDto } from '@app/domain/http';
import { devicesFor, LiveWorkers, problemFor, signingOf } from '@app/tasks';
import {
  demoModel,
  drawsPictures,
  findSafety,
  findServing,
  findTrained,
  type InstalledModel,
  modelKey,
  ModelStore,
  PictureSizes,
  problemOfOwnScheduler,
  replacedByDemo,
  weightsName,
} from '@app/model-store';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { trainingUnsupported } from './assert-drawable';
import { modelOf } from './model-aliases';
import { openaiModel } from './openai-models';
import { shownModel } from './shown-model';

/** As in `GET /v1/models`. */
const controlKind: string = 'control';
/** More than these are left to that list. */
const namesTold = 10;
/** For this long a complete model is not checked again: not every request reads its folder. */
const knownMs = 1_000;

/** The models of this installation. */
@Injectable()
export class ModelsService implements OnApplicationBootstrap {
  /** By requested name; only usable models, so that no caller makes it grow. */
  private readonly known = new Map<string, { model: InstalledModel; foundAt: number }>();

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly store: ModelStore,
    private readonly workers: LiveWorkers,
    private readonly logger: JsonLogger,
  ) {}

  /**
   * Logs which weights draw what. Not awaited: a model that was put there by hand is hashed first, which takes seconds.
   */
  onApplicationBootstrap(): void {
    this.store
      .list()
      .then((models) => {
        const installed = models.filter(({ hash }) => hash !== undefined).map(weightsName);
        this.logger.log('models', { installed, shapesStandsInFor: this.replacedBy(demoModel, models) });
      })
      .catch((error: Error) => this.logger.warn('the models folder cannot be read', { reason: error.message }));
  }

  async findAll(): Promise<ModelDto[]> {
    return (await this.shown()).map(({ model }) => model);
  }

  /** What can be drawn with, as OpenAI's API lists models. */
  async findAllForOpenai(): Promise<OpenaiModelsDto> {
    const all = (await this.shown()).filter(({ model }) => model.problem === null && drawsPictures(model.kind));
    return { object: 'list', data: all.map(({ model, addedAt }) => openaiModel(model, addedAt)) };
  }

  /** @param name installed, or what OpenAI's clients call one. @throws ModelNotFoundError */
  async findOne(name: string): Promise<OpenaiModelDto> {
    const all = await this.shown();
    const [own, meant] = [name, modelOf(name, this.config.modelAliases)].map(
      (each) =>
        all.find(({ model }) => model.name === each) ?? all.find(({ model }) => model.stands_in_for.includes(each)),
    );
    const found = own ?? meant;
    if (!found) throw new ModelNotFoundError(`The model "${name}" is not installed; ${await this.drawable()}.`);
    return openaiModel(found.model, found.addedAt, name);
  }

  /**
   * The model that draws for a name of OpenAI's clients, and its name here.
   * @throws ModelNotFoundError; UnprocessableError `ModelBroken`
   */
  async servedForOpenai(name: string = defaults.model): Promise<{ name: string; served: InstalledModel }> {
    const serve = async (each: string) => ({ name: each, served: await this.served(each, '/model') });
    const meant = modelOf(name, this.config.modelAliases);
    const isInstalled = meant === name || (await this.store.find(name)) !== undefined;
    return serve(isInstalled ? name : meant).catch((error: unknown) => {
      if (!(error instanceof UnprocessableError) || error.code !== 'ModelNotInstalled') throw error;
      throw new ModelNotFoundError(error.message, error.fields);
    });
  }

  private async shown(): Promise<{ model: ModelDto; addedAt: string }[]> {
    const [models, workers] = await Promise.all([this.store.list(), this.workers.all()]);
    const installed = { find: async (name: string) => models.find((model) => model.name === name) };
    return Promise.all(
      models.map(async (model) => {
        const trained = await findTrained(installed, model);
        const problem = problemFor({ name: model.name, key: modelKey(model) }, workers) ?? problemOfOwnScheduler(model);
        const found = {
          devices: model.hash === undefined ? [] : devicesFor(model, workers),
          untrained: typeof trained === 'string' ? trained : undefined,
          standsInFor: this.replacedBy(model.name, models),
          credentials: signingOf(workers.filter((worker) => worker.models.includes(model.name))),
          problem: model.problem ?? problem ?? null,
        };
        return { model: shownModel(model, found), addedAt: model.addedAt };
      }),
    );
  }

  /**
   * The model that draws for `name`: itself, or its stand-in.
   * @param pointer of the field with the name, if the request has it.
   * @throws UnprocessableError `ModelNotInstalled` or `ModelBroken`
   */
  async served(name: string, pointer?: string): Promise<InstalledModel> {
    const known = this.known.get(name);
    if (known && performance.now() - known.foundAt < knownMs) return known.model;
    const [model, workers] = await Promise.all([
      findServing(this.store, name, this.config.modelFallback),
      this.workers.all(),
    ]);
    const refuse = (code: ErrorCode<'unprocessable'>, message: string, more = '', which = '') =>
      new UnprocessableError(
        code,
        `The model "${name}" ${message}${more}; ${which || 'GET /v1/models says which can be drawn with'}.`,
        pointer === undefined ? undefined : [{ pointer, message: `names "${name}", which ${message}` }],
      );
    if (!model) throw refuse('ModelNotInstalled', 'is not installed', '', await this.drawable());
    if (model.kind === controlKind)
      throw refuse('ModelIsControl', 'is a ControlNet, which guides another model and draws nothing alone');
    if (model.kind === 'safety')
      throw refuse('ModelIsSafetyChecker', 'is a safety checker, which looks at pictures and draws none');
    const problem = model.problem ?? problemFor({ name: model.name, key: modelKey(model) }, workers);
    if (problem !== undefined)
      throw refuse(
        'ModelBroken',
        'is installed, but cannot be drawn with',
        `: ${inOneLine(problem).replace(/\.$/, '')}`,
      );
    this.known.set(name, { model, foundAt: performance.now() });
    return model;
  }

  /** The model that is trained for Fine-Tunes of `served`. @throws UnprocessableError `TrainingUnsupported` */
  async trainedFor(served: InstalledModel): Promise<InstalledModel> {
    const found = await findTrained(this.store, served);
    if (typeof found === 'string') throw trainingUnsupported(served, found);
    return found;
  }

  /** Names that can be drawn with, as the end of a sentence; empty if there are none. */
  private async drawable(): Promise<string> {
    const models = await this.findAll();
    const names = models.flatMap(({ name, kind, problem, stands_in_for: others }) =>
      problem === null && drawsPictures(kind) ? [name, ...others] : [],
    );
    return names.length > 0 ? `GET /v1/models lists ${names.slice(0, namesTold).join(', ')}` : '';
  }

  /** `<model>@<hash>` of what draws for each name; a name for which nothing draws is left out. */
  async bases(names: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const name of new Set(names)) {
      const model = await this.served(name).catch((error: unknown) => {
        if (error instanceof UnprocessableError) return undefined;
        throw error;
      });
      if (model) found.set(name, weightsName(model));
    }
    return found;
  }

  /**
   * A size as OpenAI's API has it, of width and height.
   * @param name of the model; the default one if it is undefined
   * @throws as `served` does; InvalidError for a size that it does not draw
   */
  async sizeOf(size: string, name: string = defaults.model): Promise<{ width: number; height: number }> {
    const served = await this.served(name, '/model');
    const { min, max } = limits.pictureEdge;
    const [width, height] = size.split('x').map(Number);
    if ([width, height].some((edge) => edge < min || edge > max))
      throw invalidAt('/size', `must be of edges from ${min} to ${max}, got ${size}`);
    const [wrong] = new PictureSizes(name, served).problemsOf({ width, height });
    if (wrong) throw invalidAt('/size', `is not drawn: "${wrong.edge}" ${wrong.problem}`);
    return { width, height };
  }

  /**
   * Checks that a ControlNet can guide a model.
   * @throws UnprocessableError `ControlNotInstalled` or `ControlDoesNotFitModel`
   */
  async assertControl(name: string, { name: model, family }: InstalledModel, pointer: string): Promise<void> {
    const control = await this.store.find(name);
    const refuse = (code: ErrorCode<'unprocessable'>, message: string) =>
      new UnprocessableError(code, `"${name}" ${message}.`, [{ pointer, message }]);
    if (control?.kind !== controlKind) throw refuse('ControlNotInstalled', 'is no ControlNet that is installed');
    if (control.family === family) return;
    throw refuse('ControlDoesNotFitModel', `is for models of ${control.family}, and ${model} is one of ${family}`);
  }

  /** Checks that pictures can be looked at. @throws UnprocessableError `SafetyNotInstalled` */
  async assertSafety(pointer: string): Promise<void> {
    if (await findSafety(this.store)) return;
    const message = 'needs a safety checker, and none is installed that can be used';
    throw new UnprocessableError('SafetyNotInstalled', ...problemAt(pointer, message));
  }

  private replacedBy(name: string, models: readonly InstalledModel[]): string[] {
    return this.config.modelFallback && name === demoModel ? replacedByDemo(models) : [];
  }
}

class ModelNotFoundError extends DomainError<'notFound'> {
  constructor(message: string, fields?: readonly FieldProblem[]) {
    super('notFound', 'ModelNotFound', message, { fields });
  }
}
