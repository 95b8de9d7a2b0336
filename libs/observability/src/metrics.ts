import { collectDefaultMetrics, Counter, Gauge, Histogram, register, Registry } from 'prom-client';

/** From a quick response to a slow upload, in seconds. */
export const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** From a small model on a GPU to a large one on a CPU, in seconds per step. */
export const stepBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];

interface Description<L extends string> {
  help: string;
  labels?: readonly L[];
}

/** The metrics of a process, in Prometheus's text format. Every name starts with `darkroom_`. */
export class Metrics {
  private readonly registry = new Registry();

  /**
   * Memory, processor and event loop are measured once per process, in prom-client's own registry, however many apps it
   * starts: nothing ends what measures them.
   */
  constructor() {
    if (register.getMetricsAsArray().length === 0) collectDefaultMetrics();
  }

  readonly contentType = this.registry.contentType;

  counter<L extends string>(name: string, { help, labels = [] }: Description<L>): Counter<L> {
    return new Counter({ name: `darkroom_${name}`, help, labelNames: labels, registers: [this.registry] });
  }

  histogram<L extends string>(
    name: string,
    { help, labels = [], buckets }: Description<L> & { buckets: number[] },
  ): Histogram<L> {
    return new Histogram({ name: `darkroom_${name}`, help, labelNames: labels, buckets, registers: [this.registry] });
  }

  /** @param collect called at each scrape to set the current value; if it fails, the metric has no value. */
  gauge<L extends string>(
    name: string,
    { help, labels = [] }: Description<L>,
    collect: (gauge: Gauge<L>) => Promise<void> | void,
  ): Gauge<L> {
    return new Gauge({
      name: `darkroom_${name}`,
      help,
      labelNames: labels,
      registers: [this.registry],
      async collect() {
        this.reset();
        await Promise.resolve(collect(this)).catch(() => this.reset());
      },
    });
  }

  async text(): Promise<string> {
    return `${await register.metrics()}\n${await this.registry.metrics()}`;
  }
}
