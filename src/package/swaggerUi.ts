import { existsSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageDir } from './built.ts'

const FILES = ['swagger-ui-bundle.js', 'swagger-ui.css', 'favicon-32x32.png'] as const
const LICENSES = ['LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt']
const FOLDER = 'swagger-ui'

export type SwaggerUiFile = (typeof FILES)[number]

const inModules = (name: string): string =>
  fileURLToPath(new URL(name, import.meta.resolve('swagger-ui-dist/package.json')))

/**
 * Copies the files that the page of the API loads from the packages of the checkout into a folder `dist`. As a dependency of
 * the installed package, `swagger-ui-dist` would bring a script that reports each installation.
 */
export const writeSwaggerUi = async (dist: string): Promise<void> => {
  await mkdir(join(dist, FOLDER))
  for (const name of [...FILES, ...LICENSES]) await cp(inModules(name), join(dist, FOLDER, name))
}

/** The path of a file, in the package or in the packages of the checkout. */
export const swaggerUiFile = (name: SwaggerUiFile): string => {
  const built = join(packageDir, 'dist', FOLDER, name)
  return existsSync(built) ? built : inModules(name)
}
