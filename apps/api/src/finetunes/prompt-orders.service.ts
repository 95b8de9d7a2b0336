import { type Finetune, type Style } from '@app/domain';
import type { ApplyStyleDto, CreatePromptDto } from '@app/domain/http';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { stylesToApply } from '../collections/applied-styles';
import { AcceptanceService } from '../generations/acceptance.service';
import { SentPictures } from '../generations/sent-pictures.service';
import type { CallerKey } from '../http/caller.decorator';
import { askedShape } from '../models/asked-shape';
import { assertDrawable } from '../models/assert-drawable';
import { ModelsService } from '../models/models.service';
import { drawnTexts, fillIn, type NewPrompt, newPrompt, refuseWithoutName } from './new-prompt';

/** Where a request has its array of elements: the body itself, or a field. */
export type ArrayPointer = '' | '/prompts' | '/styles';

/** A Prompt to be made, and the part of the body that asked for it. */
export interface AskedPrompt {
  prompt: NewPrompt;
  pointer: string;
  /** Pointer to the source of its text; by default its texts are fields of that part. */
  textPointer?: string;
}

/** The Prompts that a request asks for, and the model that draws them. */
export interface AskedPrompts<T extends AskedPrompt = AskedPrompt> {
  served: Served;
  asked: readonly T[];
}

/** What `AcceptanceService.insert` needs of these Prompts. */
export const requestOf = (asked: readonly AskedPrompt[]) => ({
  tasks: asked.map(({ prompt }) => prompt),
  pointerTo: (index: number): string => asked[index].pointer,
  textPointerTo: (index: number, field: string): string =>
    asked[index].textPointer ?? `${asked[index].pointer}/${field}`,
});

type Served = Awaited<ReturnType<ModelsService['served']>>;

/** Makes Prompts from the elements of a request, and checks them. */
@Injectable()
export class PromptOrders {
  constructor(
    private readonly dataSource: DataSource,
    private readonly acceptance: AcceptanceService,
    private readonly models: ModelsService,
    private readonly pictures: SentPictures,
  ) {}

  /** One Prompt for each element. @throws UnprocessableError naming each text without the Fine-Tune's name */
  async ofPrompts(
    caller: CallerKey,
    finetune: Finetune,
    dtos: readonly CreatePromptDto[],
    array: ArrayPointer = '',
    createdAt = new Date(),
  ): Promise<AskedPrompts> {
    this.acceptance.assertReceiversAllowed(dtos, (index) => `${array}/${index}`);
    await this.acceptance.assertQueueRoom(caller, dtos.length);
    await refuseWithoutName(caller.id, finetune, dtos, array);
    const served = await this.models.served(finetune.model);
    const drawn = await drawnTexts(
      caller.id,
      finetune,
      dtos.map(({ prompt }) => prompt),
    );
    const asked: AskedPrompt[] = [];
    const { id: ownerId, accountId } = caller;
    // One after the other: at most a hundred, and each may query the database for its pictures.
    for (const [index, dto] of dtos.entries()) {
      const pointer = `${array}/${index}`;
      const checked = await this.pictures.check(dto, { accountId, pointer, model: finetune.model, served });
      const rest = { ownerId, createdAt, served, drawn: drawn.get(dto.prompt)!, ...checked };
      asked.push({ pointer, prompt: newPrompt(finetune, dto, rest) });
    }
    return { served, asked };
  }

  /**
   * One Prompt for each Style of each element, in the order of the input and of the Collections.
   * @throws UnprocessableError for an `id` that is not a Style, or for too many Styles
   */
  async ofStyles(
    caller: CallerKey,
    finetune: Finetune,
    dtos: readonly ApplyStyleDto[],
    array: ArrayPointer = '',
    createdAt = new Date(),
  ): Promise<AskedPrompts<AskedPrompt & { dto: ApplyStyleDto }>> {
    this.acceptance.assertReceiversAllowed(dtos, (index) => `${array}/${index}`);
    const styles = await stylesToApply(this.dataSource.manager, caller.accountId, dtos, array);
    await this.acceptance.assertQueueRoom(caller, styles.flat().length);
    const [texts, served] = await Promise.all([
      fillIn(caller.id, styles, finetune, array),
      this.models.served(finetune.model),
    ]);
    const drawn = await drawnTexts(caller.id, finetune, texts.flat());
    const asked = dtos.flatMap((dto, index) => {
      const pointer = `${array}/${index}`;
      assertDrawable(served, { pointer, scheduler: dto.scheduler, prompt_weighting: dto.prompt_weighting });
      const shape = askedShape(dto, { pointer, model: finetune.model, served });
      return styles[index].map((style, at) => ({
        dto,
        pointer,
        textPointer: `${pointer}/id`,
        prompt: newPrompt(
          finetune,
          { ...dto, ...bodyOf(style, served), prompt: texts[index][at] },
          { ownerId: caller.id, createdAt, served, drawn: drawn.get(texts[index][at])!, inputs: {}, shape },
        ),
      }));
    });
    return { served, asked };
  }
}

/** A Style is for every model: its guidance and negative prompt are left out where the model draws without. */
const bodyOf = ({ negativePrompt, cfg, steps }: Style, { cannot }: Served) => ({
  negative_prompt: cannot?.negative_prompt === undefined ? negativePrompt : null,
  cfg: cannot?.cfg === undefined ? (cfg ?? undefined) : undefined,
  steps: steps ?? undefined,
});
