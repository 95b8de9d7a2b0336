import type { BarPlot, LinePlot, Plot } from './plot';

const width = 640;
const height = 360;
/** The area of the lines, inside its axes. */
const area = { left: 64, right: 616, top: 52, bottom: 300 };
/** Of both themes; a viewer that knows neither shows the light one. */
const style = `
  .ground { fill: #ffffff } .ink { fill: #1f2328 } .soft { fill: #59636e } .axis { stroke: #59636e } .grid { stroke: #d1d9e0 }
  .line.s0 { stroke: #0969da } .line.s1 { stroke: #bc4c00 } .line.s2 { stroke: #8c959f }
  .fill.s0 { fill: #0969da } .fill.s1 { fill: #bc4c00 } .fill.s2 { fill: #8c959f } .goal { stroke: #1a7f37 } .goal-text { fill: #1a7f37 }
  .line { fill: none; stroke-width: 2.5 } .goal { stroke-width: 1.5; stroke-dasharray: 5 4 }
  text { font: 13px system-ui, sans-serif } .title { font-size: 16px; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .ink { fill: #f0f6fc } .soft { fill: #9198a1 } .axis { stroke: #9198a1 } .grid { stroke: #3d444d }
    .line.s0 { stroke: #4493f8 } .line.s1 { stroke: #db6d28 } .line.s2 { stroke: #656c76 }
    .fill.s0 { fill: #4493f8 } .fill.s1 { fill: #db6d28 } .fill.s2 { fill: #656c76 } .goal { stroke: #3fb950 } .goal-text { fill: #3fb950 }
  }`;

/** A plot as an SVG picture that is readable in light and dark. */
export function svgOf(plot: Plot): string {
  const body = plot.kind === 'lines' ? lines(plot) : bars(plot);
  const frame = `<rect class="ground" width="${width}" height="${height}" rx="8"/>`;
  const label = `<title>${escaped(plot.title)}</title><style>${style}\n</style>`;
  const title = text(24, 30, plot.title, 'ink title');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img">${[label, frame, title, ...body].join('\n')}\n</svg>\n`;
}

function lines(plot: LinePlot): string[] {
  const points = plot.series.flatMap((series) => series.points);
  const xTicks = plot.xTicks ?? ticks(Math.max(...points.map(([x]) => x)));
  const yTicks = ticks(plot.yMax ?? Math.max(...points.map(([, y]) => y)));
  const last = Math.max(xTicks.at(-1)!, ...points.map(([x]) => x));
  const top = Math.max(yTicks.at(-1)!, plot.yMax ?? 0);
  const at = (x: number, y: number): [number, number] => [
    round(area.left + ((area.right - area.left) * x) / last),
    round(area.bottom - ((area.bottom - area.top) * y) / top),
  ];
  return [
    ...yTicks.flatMap((y) => {
      const [, place] = at(0, y);
      return [
        rule('grid', area.left, place, area.right, place),
        text(area.left - 8, place + 4, String(y), 'soft', 'end'),
      ];
    }),
    ...xTicks.map((x) => text(at(x, 0)[0], area.bottom + 20, String(x), 'soft', 'middle')),
    ...axes(plot),
    ...plot.series.flatMap(({ name, points: own }, i) => [
      `<polyline class="line s${i}" points="${own.map(([x, y]) => at(x, y).join(',')).join(' ')}"/>`,
      ...(own.length <= 12 ? own.map(([x, y]) => dot(at(x, y), i)) : []),
      ...legend(name, i),
    ]),
  ];
}

function bars({ bars: values, x, goal }: BarPlot): string[] {
  const left = 190;
  const longest = Math.max(goal ?? 0, ...values.map(({ value }) => value)) * 1.12;
  const at = (value: number): number => round(left + ((area.right - left) * value) / longest);
  const step = (area.bottom - area.top - 24) / values.length;
  return [
    ...values.flatMap(({ name, value }, i) => {
      const y = round(area.top + 24 + i * step);
      const size = round(step * 0.6);
      const bar = `<rect class="fill s${[2, 0, 1][i % 3]}" x="${left}" y="${y}" width="${round(at(value) - left)}" height="${size}" rx="3"/>`;
      const middle = round(y + size / 2 + 4);
      return [bar, text(left - 12, middle, name, 'ink', 'end'), text(at(value) + 8, middle, value.toFixed(2), 'ink')];
    }),
    ...(goal === undefined
      ? []
      : [
          rule('goal', at(goal), area.top + 12, at(goal), area.bottom),
          text(at(goal), area.top + 6, `goal ${goal}`, 'goal-text', 'middle'),
        ]),
    rule('axis', left, area.top + 12, left, area.bottom),
    text((left + area.right) / 2, area.bottom + 28, x, 'soft', 'middle'),
  ];
}

function axes({ x, y }: LinePlot): string[] {
  const middle = (area.top + area.bottom) / 2;
  return [
    rule('axis', area.left, area.bottom, area.right, area.bottom),
    text((area.left + area.right) / 2, area.bottom + 44, x, 'soft', 'middle'),
    `<text class="soft" text-anchor="middle" transform="translate(20 ${middle}) rotate(-90)">${escaped(y)}</text>`,
  ];
}

/** A name in the lower right corner, away from curves that begin high or end high. */
function legend(name: string, index: number): string[] {
  const y = area.bottom - 20 - 22 * index;
  return [
    `<rect class="fill s${index}" x="${area.right - 150}" y="${y - 9}" width="14" height="4" rx="2"/>`,
    text(area.right - 128, y - 2, name, 'ink'),
  ];
}

/** Round numbers from 0 up to this one, about five of them. */
function ticks(most: number): number[] {
  const rough = most / 5;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((each) => each >= rough)!;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

function dot([x, y]: [number, number], index: number): string {
  return `<circle class="fill s${index}" cx="${x}" cy="${y}" r="4"/>`;
}

function rule(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
}

function text(x: number, y: number, content: string, kind: string, anchor?: 'middle' | 'end'): string {
  const place = anchor ? ` text-anchor="${anchor}"` : '';
  return `<text class="${kind}" x="${x}" y="${y}"${place}>${escaped(content)}</text>`;
}

function escaped(content: string): string {
  return content.replace(/&/g, '&amp;').replace(/</g, '&lt;');
}

function round(value: number): number {
  return Number(value.toFixed(1));
}
