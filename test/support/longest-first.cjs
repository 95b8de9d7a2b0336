const { default: Sequencer } = require('@jest/test-sequencer');

/** They take minutes. Jest knows that from its second run on; in its first it takes the largest files for the longest. */
const longest = ['e2e/torture', 'integration/schemathesis', 'e2e/launcher', 'integration/inference'];

/** Lets no long spec file run alone at the end. */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const isLong = ({ path }) => longest.some((name) => path.endsWith(`/test/${name}.spec.ts`));
    const sorted = super.sort(tests);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
};
