import { type Config, CONFIG } from '@app/config';
import { workerBeatMs } from '@app/tasks';
import { demoModel, type InstalledModel, modelKey, ModelStore, replacedByDemo } from '@app/model-store';
import { RecurringService } from '@app/process';
import { JsonLogger } from '@app/observability';
import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { BrokenModels } from './broken-models';

/** The models folder is read at most once in this time, however many claims miss a model. */
const shortestIntervalMs = 1_000;
const unlisted = 'the models could not be listed';

interface DrawableModel {
  name: string;
  /** As `modelKey`, of what draws it. */
  key: string;
  /** The model that is trained in its place. */
  trainedOn?: string | undefined;
}

/** The models that this worker can draw now, as the claim asks for them. */
@Injectable()
export class WorkerModels extends RecurringService implements OnModuleInit {
  private models: readonly DrawableModel[] = [];
  private readAt = -Infinity;
  private refreshing?: Promise<void>;

  constructor(
    @Inject(ModelStore) private readonly store: Pick<ModelStore, 'list' | 'passedOver'>,
    @Inject(CONFIG) private readonly config: Pick<Config, 'modelFallback'>,
    logger: JsonLogger,
    private readonly broken: BrokenModels,
  ) {
    super(logger);
    this.repeat({ intervalMs: workerBeatMs, failure: unlisted, work: () => this.refresh() });
  }

  /** Reads every graph for the first time, now and not while pictures are drawn; warns of what cannot be drawn with. */
  async onModuleInit(): Promise<void> {
    try {
      for (const { name, problem } of await this.read())
        if (problem !== undefined) this.logger.warn('a model cannot be used', { model: name, problem });
      const reason = await this.store.passedOver();
      if (reason !== undefined) this.logger.warn('folders in the models folder are passed over', { reason });
    } catch (error) {
      this.warnUnlisted(error as Error);
    }
  }

  /** Names of what can be drawn on these devices, and of what the demonstration model stands in for. */
  drawableOn(devices: readonly string[]): string[] {
    const isDrawable = ({ key }: DrawableModel): boolean =>
      devices.length > 0 && this.broken.problemOf(key, devices) === undefined;
    return this.models.filter(isDrawable).map(({ name }) => name);
  }

  /** Names of what is trained on these devices: where another model is trained in its place, that is here too. */
  trainableOn(devices: readonly string[]): string[] {
    const drawable = this.drawableOn(devices);
    const { trainedOn } = this;
    return drawable.filter((name) => drawable.includes(trainedOn[name] ?? name));
  }

  /** The model that is trained in place of another, by the name of that. */
  get trainedOn(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.models.flatMap(({ name, trainedOn }) => (trainedOn ? [[name, trainedOn]] : [])));
  }

  /** Names of what is drawn with models that engines know by these keys. */
  drawnWith(keys: ReadonlySet<string>): string[] {
    return this.models.filter(({ key }) => keys.has(key)).map(({ name }) => name);
  }

  /** Reads the models folder again. A call during another's reading gets that one's result. */
  refresh(): Promise<void> {
    return (this.refreshing ??= this.read()
      .then(() => undefined)
      .finally(() => (this.refreshing = undefined)));
  }

  /** To be called when a task waits for none of these models: its model may be new. Never throws. */
  async refreshUnlessJustRead(): Promise<void> {
    if (performance.now() - this.readAt < shortestIntervalMs) return;
    await this.refresh().catch((error: Error) => this.warnUnlisted(error));
  }

  private warnUnlisted({ message }: Error): void {
    this.logger.warnSparingly(unlisted, { reason: message });
  }

  /** @returns what is installed, broken models too. */
  private async read(): Promise<InstalledModel[]> {
    const installed = await this.store.list();
    const sound = installed.flatMap(({ name, hash, defaults }) =>
      hash === undefined ? [] : [{ name, key: modelKey({ name, hash, defaults }), trainedOn: defaults.train_on }],
    );
    const demo = sound.find(({ name }) => name === demoModel);
    const names = this.config.modelFallback ? replacedByDemo(installed) : [];
    this.models = [...sound, ...(demo ? names.map((name) => ({ ...demo, name })) : [])];
    this.readAt = performance.now();
    return installed;
  }
}
