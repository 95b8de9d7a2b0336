import 'reflect-metadata';
import { runErase } from './audit-command';

void runErase(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
