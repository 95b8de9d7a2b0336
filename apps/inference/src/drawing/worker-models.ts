import type { Config } from '@app/config';
import { workerBeatMs } from '@app/image-tasks';
import type { InstalledModel, ModelStore } from '@app/model-store';
import { demoModel, replacedByDemo } from '@app/model-store';
import { RecurringService } from '@app/foundation';
import type { JsonLogger } from '@app/observability';

/** The models folder is read at most once in this time, however many claims miss a model. */
const shortestIntervalMs = 1_000;

/** The models that this worker can draw now, as the claim asks for them. */
export class WorkerModels extends RecurringService {
  private models: readonly Pick<InstalledModel, 'name' | 'requiresCuda'>[] = [];
  private refreshedAt = -Infinity;
  private refreshing?: Promise<void>;

  constructor(
    private readonly store: Pick<ModelStore, 'list'>,
    private readonly config: Pick<Config, 'modelFallback'>,
    logger: JsonLogger,
  ) {
    super(logger);
    const failure = 'the models could not be listed';
    this.repeat({ intervalMs: workerBeatMs, failure, work: () => this.refresh() });
  }

  /** Names of what can be drawn on these devices, and of what the demonstration model stands in for. */
  drawableOn(devices: readonly string[]): string[] {
    const hasCuda = devices.some((device) => device.startsWith('cuda:'));
    if (devices.length === 0) return [];
    return this.models.filter(({ requiresCuda }) => hasCuda || !requiresCuda).map(({ name }) => name);
  }

  /** Reads the models folder again. A call during another's reading gets that one's result. */
  refresh(): Promise<void> {
    return (this.refreshing ??= this.read().finally(() => (this.refreshing = undefined)));
  }

  /** Something waits that is not among these models: a new one, perhaps. */
  refreshSoon(): void {
    if (performance.now() - this.refreshedAt < shortestIntervalMs) return;
    this.refresh().catch((error: Error) =>
      this.logger.warnSparingly('the models could not be listed', { reason: error.message }),
    );
  }

  private async read(): Promise<void> {
    const installed = await this.store.list();
    const sound = installed.filter(({ hash }) => hash !== undefined);
    const names = this.config.modelFallback ? replacedByDemo(installed) : [];
    const { requiresCuda = false } = sound.find(({ name }) => name === demoModel) ?? {};
    this.models = [...sound, ...names.map((name) => ({ name, requiresCuda }))];
    this.refreshedAt = performance.now();
  }
}
