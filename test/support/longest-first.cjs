const { default: Sequencer } = require('@jest/test-sequencer');

/**
 * Those that take 20 s or more beside others on two cores, the longest first. Jest knows durations from its second run
 * on; in its first it takes the largest files for the longest.
 */
const longest = [
  ...[
    'e2e/torture',
    'golden/webgpu',
    'golden/pipeline',
    'e2e/page',
    'e2e/launcher',
    'integration/schemathesis',
    'e2e/page-states',
  ],
  ...['integration/inference-deaths', 'integration/sandbox', 'integration/docker', 'e2e/page-operator'],
  ...['integration/inference', 'e2e/guides', 'integration/models', 'integration/client-package'],
  ...['integration/inference-sharing', 'e2e/page-recovery', 'integration/inference-lanes', 'e2e/text-to-image'],
  ...['integration/deliveries', 'integration/generated-clients', 'integration/webhooks'],
  ...['integration/contract-replies', 'golden/model-folder', 'golden/lora', 'e2e/story', 'integration/work-process'],
];

/** Lets no long spec file run alone at the end. */
module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const placeOf = ({ path }) => {
      const place = longest.findIndex((name) => path.endsWith(`/test/${name}.spec.ts`));
      return place < 0 ? longest.length : place;
    };
    return super.sort(tests).sort((a, b) => placeOf(a) - placeOf(b));
  }
};
