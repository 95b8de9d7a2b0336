import { bringUp } from '../draw/bring-up';
import { fill, settingsOf } from '../draw/draft';
import { vary } from '../draw/start-drawing';
import { type Drawing, drawingOfGeneration, drawingOfPrompt, type Listed } from '../drawings/drawing';
import { drop } from '../drawings/feed';
import { seedOf } from '../drawings/service-rules';
import { put, tellOtherTabs } from '../drawings/store';
import { DarkroomError } from '../service/client';
import { client } from '../session/session';
import { attempt, say } from '../ui/notices';

export function cancel({ id, finetuneId }: Listed): void {
  void attempt(async () => {
    if (finetuneId === undefined) put(drawingOfGeneration(await client().generations.cancel(id)));
    else {
      const prompt = await client().prompts.cancel(finetuneId, id);
      put(drawingOfPrompt(prompt, prompt, finetuneId));
    }
    tellOtherTabs();
  });
}

export async function remove({ id, finetuneId }: Listed): Promise<void> {
  try {
    if (finetuneId === undefined) await client().generations.delete(id);
    else await client().prompts.delete(finetuneId, id);
  } catch (error) {
    // Another tab was faster.
    if (!(error instanceof DarkroomError && error.status === 404)) throw error;
  }
  drop(id);
}

export function removeAndSay(drawing: Listed): void {
  void attempt(async () => {
    await remove(drawing);
    say('The picture was deleted.');
  });
}

export function varyAndShow(drawing: Drawing): void {
  void attempt(async () => {
    await vary(drawing);
    bringUp('stage', 'It is drawn again with a new seed.');
  });
}

export function reuseAndShow(drawing: Drawing, index: number): void {
  fill({ ...settingsOf(drawing), seed: seedOf(drawing, index), finetuneId: drawing.finetuneId });
  bringUp('form', 'The settings of the picture are in the form.');
}

export async function copy(text: string): Promise<void> {
  // Browsers allow it only on HTTPS and localhost.
  const isCopied = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  say(isCopied ? 'Copied.' : 'The browser did not allow copying. Select the text instead.', !isCopied);
}
