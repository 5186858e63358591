import { flushCompileCache } from 'node:module'
import { codeDir } from './codeCache.js'

/**
 * Run by `npm ci` and `npm pack`. Loads the modules of a server, so that its first start finds them compiled, and builds the
 * package.
 */
if (codeDir !== null) {
  await Promise.all([import('../main.ts'), import('koa-body')])
  const { prepareChildCode } = await import('../sandbox/childCode.ts')
  prepareChildCode(codeDir)
  flushCompileCache()
}
const { buildPackage } = await import('../package/buildPackage.ts')
await buildPackage()
