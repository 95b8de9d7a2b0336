/** Lines through points. */
export interface LinePlot {
  kind: 'lines';
  /** Name of its file. */
  file: string;
  title: string;
  x: string;
  y: string;
  xTicks?: number[];
  yMax?: number;
  series: { name: string; points: [number, number][] }[];
}

/** Horizontal bars that begin at 0. */
export interface BarPlot {
  kind: 'bars';
  file: string;
  title: string;
  /** What the length is. */
  x: string;
  bars: { name: string; value: number }[];
  /** A line across all bars. */
  goal?: number;
}

export type Plot = LinePlot | BarPlot;
