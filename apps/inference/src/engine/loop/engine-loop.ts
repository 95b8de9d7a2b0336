import { setImmediate } from 'node:timers/promises';
import { AbortError } from '@app/diffusion';
import type { DrawCommand, DrawingInProgress } from '../calls/drawing-in-progress';
import type { EngineMessage } from '../engine-protocol';
import { failureOf } from '../failure';
import type { LoadingOptions } from '../models/model-loading';
import { laneCount } from '../lane';
import { EngineParts } from './engine-parts';

/**
 * Draws every request of a device side by side: each round admits what has room, and chooses the next piece of work,
 * which is a picture to decode, or who goes next by a call of the U-Net. One picture has all threads of the device;
 * several are drawn in lanes, if there are any, each of which is at a piece of its own. With CUDA this thread only
 * calls the U-Net, and a second thread encodes, decodes and enlarges beside it. Between two rounds commands come in.
 */
export class EngineLoop {
  private readonly parts: EngineParts;
  private drawings: DrawingInProgress[] = [];
  private running: Promise<void> | undefined;
  private isClosed = false;

  /** @param onLost told when a thread of this engine has ended by itself: it must end too */
  constructor(
    options: LoadingOptions,
    memoryBytes: number,
    private readonly report: (message: EngineMessage) => void,
    onLost: (error: Error) => void,
  ) {
    const host = {
      report,
      drawings: () => this.drawings,
      isDrawingAlone: () => this.isDrawingAlone,
      isClosed: () => this.isClosed,
      begun: (drawing: DrawingInProgress) => this.begin(drawing),
      decoded: (drawing: DrawingInProgress) => this.decoded(drawing),
      drawAlone: (drawing: DrawingInProgress) => {
        this.parts.admission.addAlone(drawing);
        this.remove(drawing);
      },
      end: (drawing: DrawingInProgress, error: unknown) => this.end(drawing, error),
      failed: (command: DrawCommand, error: unknown) => {
        this.fail(command, error);
        this.parts.changes.note();
      },
      left: (owner: string) => this.left(owner),
    };
    this.parts = new EngineParts(options, memoryBytes, host, onLost);
  }

  /** Draws, and reports how it went; never throws. */
  add(command: DrawCommand): void {
    this.parts.admission.add(command);
    this.parts.changes.note();
    this.running ??= this.run().finally(() => (this.running = undefined));
  }

  /** Gives up what is being drawn, and releases every model. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
    await this.parts.close();
  }

  private async run(): Promise<void> {
    const { admission, changes, enlarging, ownThread, places, sideWork } = this.parts;
    while (!this.isClosed && admission.size + this.drawings.length > 0) {
      await setImmediate();
      this.endAborted();
      enlarging.wake();
      if (sideWork) await ownThread.run(() => sideWork.callOrWait());
      else if (await ownThread.run(() => this.goOn())) continue;
      else if (this.drawings.length === 0) await (places.areIdle ? admission.nextReady() : changes.next());
      else if (this.mayUseLanes) await this.goOnInLane();
      else if (!places.areIdle) await changes.next();
    }
    enlarging.wake();
  }

  /**
   * Admits what has room, and does the next piece of all threads; both at once, because a tile may go before the next
   * time.
   * @returns whether there was such a piece
   */
  private async goOn(): Promise<boolean> {
    const { admission, choice, places } = this.parts;
    await admission.admit();
    if (this.wantsLanes) for (const { model } of this.drawings) model.openLanes();
    if (this.drawings.length === 0 || !places.areIdle || this.mayUseLanes) return false;
    const piece = choice.nextPiece();
    await piece?.();
    return piece !== undefined;
  }

  private get isDrawingAlone(): boolean {
    return this.drawings.some(({ command }) => command.alone);
  }

  /** Whether there is more than one picture for the lanes, and nothing that only all threads together can do. */
  private get wantsLanes(): boolean {
    const pictures = this.drawings.reduce((sum, { undecoded }) => sum + undecoded.length, 0);
    return pictures >= laneCount && !this.isDrawingAlone && this.parts.enlarging.modelsInUse.length === 0;
  }

  /** Whether the lanes are wanted, have the models of all drawings, and each has room for a picture of each drawing. */
  private get mayUseLanes(): boolean {
    if (!this.wantsLanes || this.drawings.some(({ model }) => !model.inLanes)) return false;
    return this.drawings.every((drawing) => this.parts.pieces.hasRoomInLanes(drawing));
  }

  private async goOnInLane(): Promise<void> {
    const { choice, changes, places } = this.parts;
    const lane = places.free;
    const piece = lane === undefined ? undefined : choice.nextPiece(lane);
    if (lane === undefined || !piece) return changes.next();
    places.begin(lane, piece);
  }

  private endAborted(): void {
    this.parts.admission.endAborted();
    this.parts.enlarging.endAborted();
    for (const drawing of this.drawings.filter(({ isAborted }) => isAborted)) this.end(drawing, new AbortError());
  }

  private begin(drawing: DrawingInProgress): void {
    const { command, pipeline, owner, trajectories } = drawing;
    this.parts.shares.enter(owner);
    this.drawings.push(drawing);
    this.parts.changes.note();
    const { chunks: promptChunks } = trajectories[0].prompt;
    const scheduler = command.request.scheduler ?? pipeline.facts.scheduler;
    this.report({ type: 'started', id: command.id, promptChunks, scheduler });
  }

  private decoded(drawing: DrawingInProgress): void {
    const { id, upscaler } = drawing.command;
    if (upscaler) this.parts.enlarging.add(drawing, upscaler);
    this.remove(drawing);
    if (!upscaler) this.report({ type: 'done', id, computeMs: drawing.computeMs });
  }

  private end(drawing: DrawingInProgress, error: unknown): void {
    this.remove(drawing);
    this.fail(drawing.command, error);
  }

  private remove(drawing: DrawingInProgress): void {
    this.drawings = this.drawings.filter((other) => other !== drawing);
    this.left(drawing.owner);
  }

  private left(owner: string): void {
    const { admission, enlarging, shares } = this.parts;
    if (!this.drawings.some((drawing) => drawing.owner === owner) && !enlarging.owners.includes(owner))
      shares.leave(owner, admission.has(owner));
  }

  private fail(command: DrawCommand, error: unknown): void {
    this.left(command.owner);
    this.report({ type: 'failed', id: command.id, ...failureOf(error, command) });
  }
}
