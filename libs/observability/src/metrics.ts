import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Seconds from a quick answer to a slow upload. */
export const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** Seconds of one step, from a small model on a GPU to a large one on a CPU. */
export const stepBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];

interface Description<L extends string> {
  help: string;
  labels?: readonly L[];
}

/** What a process measures, in the text form that Prometheus reads. Every name starts with `darkroom_`. */
export class Metrics {
  private readonly registry = new Registry();

  /** Memory, processor and event loop of the process, too. */
  constructor() {
    collectDefaultMetrics({ register: this.registry });
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

  /** @param collect called for each reading, to set what is true then; one that fails leaves the metric without a value. */
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

  text(): Promise<string> {
    return this.registry.metrics();
  }
}
