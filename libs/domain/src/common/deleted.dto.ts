import { ApiProperty } from '@nestjs/swagger';

/** Says that a resource was deleted. */
export class DeletedDto {
  @ApiProperty({ type: String, example: 'Generation 4f2kQ0yq8S3zVn1xRb7TdA9w has been deleted successfully.' })
  delete: string;

  /** @param resource as the contract spells it, such as `Generation`. */
  static of(resource: string, id: string): DeletedDto {
    return { delete: `${resource} ${id} has been deleted successfully.` };
  }
}
