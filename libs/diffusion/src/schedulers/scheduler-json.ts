import { SchedulerError } from './scheduler';

/** The content of a `scheduler_config.json`. */
export type SchedulerJson = Readonly<Record<string, unknown>>;

/**
 * Parses the text of a `scheduler_config.json`. Python writes -Infinity and NaN into such files
 * (`lambda_min_clipped`), which are not JSON.
 * @throws SchedulerError when the text is not a JSON object.
 */
export function parseSchedulerJson(source: string): SchedulerJson {
  const literals = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;
  const asJson: Record<string, string> = { Infinity: '1e999', '-Infinity': '-1e999', NaN: 'null' };
  let json: unknown;
  try {
    json = JSON.parse(source.replace(literals, (match) => asJson[match] ?? match));
  } catch {
    throw new SchedulerError('The scheduler configuration is not valid JSON.');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new SchedulerError('The scheduler configuration is not a JSON object.');
  return json as SchedulerJson;
}
