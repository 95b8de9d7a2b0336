import type { DataSource } from 'typeorm';
import { CliError } from './run-program';

export const accountOption = [
  '--account <name>',
  'of this account alone, by its name or the id of its first key',
] as const;

/** Their ids. @throws CliError if there is none of that name */
export async function accountsOf(dataSource: DataSource, name: string): Promise<string[]> {
  const found = await dataSource.query<{ id: string }[]>(
    'SELECT DISTINCT account_id AS id FROM api_keys WHERE account = $1 OR account_id = $1',
    [name],
  );
  if (found.length === 0) throw new CliError(`There is no account "${name}"; "npm run keys -- list" shows them.`);
  return found.map(({ id }) => id);
}
