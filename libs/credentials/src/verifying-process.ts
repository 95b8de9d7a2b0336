import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { serveWork } from '@app/process';
import { readManifests } from './c2pa';
import { isTimeUntrusted, type PictureReport, reportOf } from './picture-report';
import type { VerifyingOrder } from './picture-verifier';
import { sourceTypesInXmp } from './xmp';

serveWork<VerifyingOrder, PictureReport>(async ({ path, type, own }) => {
  const file = readFileSync(path);
  const words = await sourceTypesInXmp(file);
  const store = await readManifests(file, type, own);
  if (!store || !isTimeUntrusted(store)) return reportOf(words, store);
  // The authorities that browsers know are asked only here: to read them takes a tenth of a second.
  const clocks = [own.clocks, ...rootCertificates].join('\n');
  return reportOf(words, await readManifests(file, type, { ...own, clocks }));
});
