import 'reflect-metadata';
import { runVerify } from './verify-command';

void runVerify(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
