import type { Drawing } from '../drawings/drawing';
import { askable } from '../drawings/service-rules';

/** Languages of snippets, which read the key from the environment. */
export const languages = ['curl', 'TypeScript', 'Python'] as const;
export type Language = (typeof languages)[number];

/** @param url where the service is */
export function snippetOf(language: Language, drawing: Drawing, url: string): string {
  const body = bodyOf(drawing);
  if (language === 'curl') return curl(drawing, body, url);
  return language === 'TypeScript' ? typeScript(drawing, body, url) : python(drawing, body, url);
}

/** JSON leaves out fields that are undefined. */
function bodyOf({ prompt, negative_prompt, aspect_ratio, steps, cfg, seed, ...drawing }: Drawing) {
  return {
    prompt,
    negative_prompt: negative_prompt ?? undefined,
    ...(aspect_ratio === null ? { width: drawing.width, height: drawing.height } : { aspect_ratio }),
    ...{ steps, cfg, seed },
    high_resolution: drawing.high_resolution || undefined,
    prompt_weighting: drawing.prompt_weighting || undefined,
    image: drawing.image ?? undefined,
    strength: drawing.strength ?? undefined,
    mask: drawing.mask ?? undefined,
    outpaint: drawing.outpaint ?? undefined,
    references: drawing.references.length > 0 ? drawing.references : undefined,
    scheduler: drawing.scheduler ?? undefined,
    num_generations: drawing.num_generations > 1 ? askable(drawing.num_generations) : undefined,
    control: drawing.control.length > 0 ? drawing.control : undefined,
    ...(drawing.finetuneId === undefined && {
      model: drawing.model,
      finetunes: drawing.finetunes.length > 0 ? drawing.finetunes : undefined,
    }),
  };
}

const pathOf = ({ finetuneId }: Drawing): string =>
  finetuneId === undefined ? '/v1/sd/text-to-image' : `/v1/finetunes/${finetuneId}/prompts`;

/** A Fine-Tune takes a list of Prompts. */
const sent = ({ finetuneId }: Drawing, body: unknown): unknown => (finetuneId === undefined ? body : [body]);

function curl(drawing: Drawing, body: unknown, url: string): string {
  const json = JSON.stringify(sent(drawing, body), null, 2).replaceAll("'", `'\\''`);
  return [
    `curl -s ${url}${pathOf(drawing)} \\`,
    '  -H "Authorization: Bearer $DARKROOM_API_KEY" \\',
    "  -H 'Content-Type: application/json' -H 'Prefer: wait=60' \\",
    `  -d '${json}'`,
  ].join('\n');
}

function typeScript(drawing: Drawing, body: unknown, url: string): string {
  const text = JSON.stringify(body, null, 2);
  const call =
    drawing.finetuneId === undefined
      ? [`const { images } = await darkroom.generate(${text});`]
      : [
          `const [{ id }] = await darkroom.prompts.create('${drawing.finetuneId}', [${text}]);`,
          `const { images } = await darkroom.prompts.wait('${drawing.finetuneId}', id);`,
        ];
  return [
    '// The package is packages/client of the repository; DARKROOM_API_KEY is your key.',
    "import { createClient } from '@darkroom/client';",
    '',
    `const darkroom = createClient({ baseUrl: '${url}', apiKey: process.env.DARKROOM_API_KEY ?? '' });`,
    ...call,
    'console.log(images);',
  ].join('\n');
}

function python(drawing: Drawing, body: unknown, url: string): string {
  return [
    'import json, os, urllib.request',
    '',
    `body = json.loads(r'''${JSON.stringify(sent(drawing, body)).replaceAll("'", '\\u0027')}''')`,
    'request = urllib.request.Request(',
    `    "${url}${pathOf(drawing)}",`,
    '    data=json.dumps(body).encode(),',
    '    headers={',
    '        "Authorization": f"Bearer {os.environ[\'DARKROOM_API_KEY\']}",',
    '        "Content-Type": "application/json",',
    '        "Prefer": "wait=60",',
    '    },',
    ')',
    'print(json.load(urllib.request.urlopen(request)))',
  ].join('\n');
}
