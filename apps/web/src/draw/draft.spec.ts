import type { Drawing } from '../drawings/drawing';
import type * as draft from './draft';

// Shows what went wrong, for which a page is needed.
jest.mock('../ui/notices', () => ({}));

const drawing: Drawing = {
  id: 'x',
  prompt: 'a red circle',
  negative_prompt: null,
  aspect_ratio: null,
  ...{ width: 768, height: 512 },
  ...{ cfg: 7.5, steps: 4, seed: 7, scheduler: 'euler', high_resolution: false, prompt_weighting: false },
  ...{ image: 'https://example.com/a.png', strength: 1, mask: null, outpaint: true },
  ...{ finetunes: [], control: [], references: [] },
  ...{ model: 'shapes', served_by: null, num_generations: 2 },
  filtered: 0,
  ...{ thumbnail: null, images: [], publicUrls: [], status: 'succeeded', error: null, created_at: '' },
};

describe('the settings of something that was drawn', () => {
  let settingsOf: typeof draft.settingsOf;
  beforeAll(() => {
    // What the page's modules have of a browser as they are loaded.
    const listens = { addEventListener: () => undefined };
    class BroadcastChannel {
      addEventListener = listens.addEventListener;
    }
    Object.assign(globalThis, { ...listens, BroadcastChannel, document: { baseURI: 'http://localhost/' } });
    ({ settingsOf } = jest.requireActual<typeof draft>('./draft'));
  });

  it.each([[true], [{ x: 16, y: 0 }]] as const)('draw around the same picture again, at %j', (outpaint) => {
    expect(settingsOf({ ...drawing, outpaint })).toMatchObject({ outpaint, width: 768, height: 512, strength: 1 });
  });

  it('have no more pictures than a request may ask for, as a drawing by the routes of OpenAI has', () => {
    expect(settingsOf({ ...drawing, num_generations: 10 }).num_generations).toBe(8);
  });
});
