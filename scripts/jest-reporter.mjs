import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Writes the results for `scripts/test.mjs` to `TEST_REPORT`. Jest's own JSON report does not contain
 * the project of a file.
 */
export default class JestReporter {
  files = [];

  constructor({ rootDir }) {
    this.rootDir = rootDir;
  }

  onTestFileResult(test, result) {
    const { perfStats, testResults, testExecError } = result;
    const name = `${test.context.config.displayName.name} ${relative(this.rootDir, test.path)}`;
    const failures = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    if (testExecError) failures.push('cannot be run');
    this.files.push({ name, seconds: (perfStats.end - perfStats.start) / 1000, failures });
  }

  onRunComplete(_, results) {
    const report = {
      passed: results.numPassedTests,
      // A spec file that cannot be loaded has no tests to count; it is one failure.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      skipped: results.numPendingTests + results.numTodoTests,
      files: this.files,
    };
    writeFileSync(process.env.TEST_REPORT, JSON.stringify(report));
  }
}
