import type { DataSource } from 'typeorm';

/** Writes a row for the sake of it: a replica, a full disk and a database that was made read-only still answer every question. */
export async function probeWrite(dataSource: Pick<DataSource, 'query'>): Promise<void> {
  await dataSource.query(
    `INSERT INTO readiness_probes (id, probed_at) VALUES (1, now())
     ON CONFLICT (id) DO UPDATE SET probed_at = excluded.probed_at`,
  );
}
