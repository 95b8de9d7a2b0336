const { default: Sequencer } = require('@jest/test-sequencer');

const projects = ['slow', 'e2e', 'integration', 'scale-out', 'golden', 'unit'];
const rank = ({ context }) => projects.indexOf(context.config.displayName.name);

/** Files that mostly wait come first, so that no long one runs alone at the end. */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    return super.sort(tests).sort((a, b) => rank(a) - rank(b));
  }
};
