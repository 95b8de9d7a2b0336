import { execFileSync } from 'node:child_process';
import type { Drawing } from '../drawings/drawing';
import { snippetOf } from './snippets';

const drawing: Drawing = {
  id: 'x',
  prompt: `a "red" circle, it's on $HOME \\ 'blue' '''`,
  negative_prompt: null,
  aspect_ratio: 'square',
  width: 512,
  height: 512,
  outpaint: null,
  cfg: 7.5,
  steps: 4,
  seed: 4294967295,
  scheduler: 'euler',
  high_resolution: false,
  prompt_weighting: false,
  finetunes: [],
  image: null,
  strength: null,
  mask: null,
  control: [],
  references: [],
  model: 'shapes',
  served_by: null,
  num_generations: 2,
  filtered: 0,
  thumbnail: null,
  images: [],
  publicUrls: [],
  status: 'succeeded',
  error: null,
  created_at: '',
};
const body = {
  prompt: drawing.prompt,
  aspect_ratio: 'square',
  steps: 4,
  cfg: 7.5,
  seed: 4294967295,
  model: 'shapes',
  scheduler: 'euler',
  num_generations: 2,
};

describe(snippetOf.name, () => {
  it('writes a curl command whose body a shell reads as it is', () => {
    const command = snippetOf('curl', drawing, 'http://localhost:3000');
    expect(command).toContain('http://localhost:3000/v1/sd/text-to-image');
    // Replaces curl by a function that prints its last argument.
    const script = command.replace(/^curl/, `f() { for last; do :; done; printf '%s' "$last"; }; f`);
    expect(JSON.parse(execFileSync('sh', ['-c', script], { encoding: 'utf8' }))).toEqual(body);
  });

  it('asks for no more pictures than a request may, as a drawing by the routes of OpenAI has', () => {
    expect(snippetOf('TypeScript', { ...drawing, num_generations: 10 }, 'http://x')).toContain('"num_generations": 8');
  });

  it('writes TypeScript for a Generation and for a Prompt', () => {
    expect(snippetOf('TypeScript', drawing, 'http://x')).toContain(JSON.stringify(drawing.prompt));
    const ofPrompt = snippetOf('TypeScript', { ...drawing, finetuneId: 'f1' }, 'http://x');
    expect(ofPrompt).toContain(`prompts.create('f1'`);
    expect(ofPrompt).not.toMatch(/"model"|"finetunes"/);
  });

  it('writes Python with a body that no quote of the prompt ends', () => {
    const program = snippetOf('Python', drawing, 'http://x');
    const [, json] = /json\.loads\(r'''([\s\S]*?)'''\)/.exec(program) ?? [];
    expect(JSON.parse(json)).toEqual(body);
  });
});
