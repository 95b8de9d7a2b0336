import 'reflect-metadata';
import { runAudit } from './audit-command';

void runAudit(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
