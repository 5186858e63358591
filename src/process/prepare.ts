import { flushCompileCache } from 'node:module'
import { codeDir } from './codeCache.js'

/** Run by `npm ci`: loads the modules of a server, so that its first start finds them compiled. */
if (codeDir !== null) {
  await Promise.all([import('../main.ts'), import('koa-body')])
  const { prepareChildCode } = await import('../sandbox/childCode.ts')
  prepareChildCode(codeDir)
  flushCompileCache()
}
