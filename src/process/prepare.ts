import { flushCompileCache } from 'node:module'
import { codeDir } from './codeCache.js'

/** Run by `npm ci`: loads what a server loads, so that the first start finds it compiled. */
if (codeDir !== null) {
  await Promise.all([import('../main.ts'), import('koa-body')])
  const { prepareChildCode } = await import('../sandbox/childCode.ts')
  prepareChildCode(codeDir)
  flushCompileCache()
}
