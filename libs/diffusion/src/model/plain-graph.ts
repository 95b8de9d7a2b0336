import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The graph of a part that every device can load: `model.onnx`, or the only one with any name;
 * undefined if there is none.
 */
export function findPlainGraph(folder: string): string | undefined {
  const graphs = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.onnx')) : [];
  const name = graphs.includes('model.onnx') || graphs.length !== 1 ? 'model.onnx' : graphs[0];
  return graphs.includes(name) ? join(folder, name) : undefined;
}
