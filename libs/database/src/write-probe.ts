import type { DataSource } from 'typeorm';

/** Writes a row as a test: a replica, a full disk and a read-only database still answer every query. */
export async function probeWrite(dataSource: Pick<DataSource, 'query'>): Promise<void> {
  await dataSource.query(
    `INSERT INTO readiness_probes (id, probed_at) VALUES (1, now())
     ON CONFLICT (id) DO UPDATE SET probed_at = excluded.probed_at`,
  );
}
