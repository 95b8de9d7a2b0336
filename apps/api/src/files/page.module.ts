import { Module } from '@nestjs/common';
import { PageController } from './page.controller';
import { PageFiles } from './page-files';
import { SignIn } from './sign-in';

/** The playground at `/`: its files, and the exchange of a sign-in code. */
@Module({ controllers: [PageController], providers: [PageFiles, SignIn] })
export class PageModule {}
