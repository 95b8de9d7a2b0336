import { readFileSync } from 'node:fs';
import { serveWork } from '@app/process';
import { readManifests } from './c2pa';
import { type PictureReport, reportOf } from './picture-report';
import type { VerifyingOrder } from './picture-verifier';

serveWork<VerifyingOrder, PictureReport>(async ({ path, type }) => {
  const file = readFileSync(path);
  return reportOf(file, await readManifests(file, type));
});
