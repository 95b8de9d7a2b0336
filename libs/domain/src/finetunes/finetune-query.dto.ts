import { UserParameter } from '../tasks/task-query.dto';

/** Which Fine-Tunes a list is limited to. */
export class FinetuneQueryDto {
  @UserParameter('Only those that were trained, or whose weights were fetched, for this `user`.') user?: string;
}
