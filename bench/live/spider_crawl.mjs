// Crawls the same web with spider-rs (Rust, as a library of Node.js), to the last page: node spider_crawl.mjs SEEDS MODULES
//
// A website of spider-rs is one site, so all sites are crawled at a time, each by a crawl of its own. robots.txt is obeyed; there is no
// delay. MODULES: the folder in which npm has installed spider-rs. Every page is given to a function that counts it; nothing is stored, unlike in Trapline.

import { readFileSync } from "node:fs"
import { createRequire } from "node:module"

const [seedFile, modules] = process.argv.slice(2)
const spider = createRequire(modules + "/")("@spider-rs/spider-rs")
const seeds = readFileSync(seedFile, "utf8").split("\n").filter(Boolean)
const started = Date.now()
let last = started
const urls = new Set()

function take(error, page) {
  if (!error && page.statusCode === 200) {
    urls.add(page.url)
    last = Date.now()
  }
}

await Promise.all(seeds.map((seed) => new spider.Website(seed).withRespectRobotsTxt(true).withDelay(0).build().crawl(take)))
console.log(JSON.stringify({ pages: urls.size, started: started / 1000, seconds: (last - started) / 1000 }))
process.exit(0)
