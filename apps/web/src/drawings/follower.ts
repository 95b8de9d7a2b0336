import { effect } from '@preact/signals';
import { DarkroomError, type Generation, type TaskEvent, type TerminatedPrompt } from '../service/client';
import { isReachable } from '../service/reach';
import { client, session } from '../session/session';
import { drawingOfGeneration, drawingOfPrompt, isOpen, type Listed } from './drawing';
import { Silence } from './silence';
import { drawings, forget, progress, put, putAsTold, read, setProgress } from './store';

/** A browser opens six connections to a host, across all tabs, and other requests need some. */
const maxStreams = 2;
const pollMs = 1_500;
/** Few, so that a page with many open drawings leaves most of its key's rate limit to others. */
const readsPerTurn = 2;
const reconnectMs = 1_000;

const streams = new Map<string, AbortController>();
const silence = new Silence();

/** Follows open drawings: the oldest, which are next in turn, by their event streams, the others by polling. */
export function followOpenDrawings(): () => void {
  const stop = effect(() => {
    const isOn = session.value !== undefined && isReachable.value;
    const open = isOn ? [...drawings.value.values()].filter(isOpen) : [];
    const followed = open.sort((a, b) => (a.created_at < b.created_at ? -1 : 1)).slice(0, maxStreams);
    for (const [id, controller] of streams) if (!followed.some((drawing) => drawing.id === id)) controller.abort();
    for (const drawing of followed) if (!streams.has(drawing.id)) void follow(drawing);
  });
  const timer = setInterval(() => {
    noteSilence();
    void pollOthers();
  }, pollMs);
  return () => {
    stop();
    clearInterval(timer);
    for (const controller of streams.values()) controller.abort();
  };
}

async function follow(drawing: Listed): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  streams.set(drawing.id, controller);
  silence.excuse(drawing.id, performance.now());
  try {
    for await (const event of eventsOf(drawing, signal)) receive(drawing, event);
  } catch (error) {
    forgetIfGone(drawing)(error);
    // Otherwise it is followed again below, if it is still open; the record has what was missed.
  }
  await readIfThere(drawing).catch(() => undefined);
  if (!isOpen(drawings.value.get(drawing.id) ?? { status: 'canceled' })) silence.forget(drawing.id);
  setTimeout(() => {
    streams.delete(drawing.id);
    // Runs the effect again.
    drawings.value = new Map(drawings.value);
  }, reconnectMs);
}

type DrawingEvent = TaskEvent<Generation | TerminatedPrompt>;

function eventsOf({ id, finetuneId }: Listed, signal: AbortSignal): AsyncIterable<DrawingEvent> {
  if (finetuneId === undefined) return client().generations.events(id, { signal });
  return client().prompts.events(finetuneId, id, { signal });
}

function receive({ id, finetuneId }: Listed, { event, data }: DrawingEvent): void {
  const known = progress.value.get(id);
  if (event === 'progress') {
    const { step, total, preview } = data;
    silence.step(id, performance.now());
    const isAgain = (known?.isAgain ?? false) || step < (known?.step ?? 0);
    const now = { step, total, position: undefined, isAgain, isSilent: false };
    setProgress(id, { ...now, ...(preview !== null && { preview }) });
  } else if (event === 'queued') {
    silence.forget(id);
    setProgress(id, { position: data.position, isSilent: false });
    if ((known?.step ?? 0) > 0) beginAgain(id);
  } else if (event === 'terminated') {
    const prompt = data as TerminatedPrompt;
    put(
      finetuneId === undefined ? drawingOfGeneration(data as Generation) : drawingOfPrompt(prompt, prompt, finetuneId),
    );
  }
}

/** Its worker gave it back to the queue. */
function beginAgain(id: string): void {
  const drawing = drawings.value.get(id);
  setProgress(id, { step: 0, isAgain: true });
  if (drawing && isOpen(drawing)) putAsTold({ ...drawing, status: 'queued' });
}

/** A killed worker says nothing, so the page must notice. While the service is away no worker can be heard. */
function noteSilence(): void {
  if (!isReachable.value) return;
  for (const id of silence.silent(performance.now())) {
    const { step, total, isSilent } = progress.value.get(id) ?? { step: 0, total: 0 };
    // Work after the last step may take any time.
    if (step < total && !isSilent) setProgress(id, { isSilent: true });
  }
}

async function readIfThere(drawing: Listed): Promise<void> {
  if (drawings.value.has(drawing.id) && isReachable.value) await read(drawing);
}

let isPolling = false;
let turns = 0;

/** Each turn reads the next few of those that no stream follows, one after the other. */
async function pollOthers(): Promise<void> {
  if (isPolling || !session.value || !isReachable.value || document.hidden) return;
  const others = [...drawings.value.values()].filter((drawing) => isOpen(drawing) && !streams.has(drawing.id));
  const first = others.length <= readsPerTurn ? 0 : (turns++ * readsPerTurn) % others.length;
  isPolling = true;
  for (const drawing of others.slice(first, first + readsPerTurn))
    await readIfThere(drawing).catch(forgetIfGone(drawing));
  isPolling = false;
}

/** 404: the record was deleted. */
const forgetIfGone =
  ({ id }: Listed) =>
  (error: unknown): void => {
    if (error instanceof DarkroomError && error.status === 404) forget(id);
  };
