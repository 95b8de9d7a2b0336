import 'reflect-metadata';
import { runErase } from './erase-command';

void runErase(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
