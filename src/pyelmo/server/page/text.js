// Every text of the page in English and Korean.

const EN = {
  tagline: "explorer", skip: "Skip to the content", otherLanguage: "한국어", model: "Model", navigation: "Views",
  loading: "Computing …", gone: "The server does not answer. This page tries again until it is back.",
  busy: "The server is busy. Try again in a moment.", needsKey: "This server needs an API key.", useKey: "Use this key",
  keep: "Save or share", copyLink: "Copy link", copied: "Copied", copyFailed: "Copy the address of this page",
  examples: "Examples", edit: "Write your own sentences", sentences: "Sentences, one on each line; the word between asterisks is optional", sentence: "Sentence", word: "word", cosine: "cosine",
  pickWord: "Click the word to compare", pickIn: "Words of sentence {n}", pick: "Click a word",
  layer: "layer", tokenLayer: "token layer", layerN: "layer {n}", topLayer: "layer {n} (top)", between: "between layer {a} and layer {b}",
  footer: "pyelmo {version} · your text is sent to this server only", api: "API of this server",

  contextName: "Word in context",
  contextTitle: "One word, several sentences, several vectors",
  contextLead: "Move the slider. In the token layer the word is one point, whatever the sentence. Layer by layer the context pulls its meanings apart.",
  contextMap: "Map of the word", play: "Play", stop: "Stop",
  contextNote: "Each numbered point is the vector of the word in one sentence, scaled to length 1. All layers share the same two axes (principal components of all layers together, each layer centred), so a movement is a real change of the vector. {shown} of the variance of this layer is in the picture. A static vector such as word2vec's has one point for all sentences: the diamond.",
  staticVector: "static vector", matrix: "Cosines in {layer}", sameSense: "same sense", otherSense: "different senses",
  meanCosine: "Mean cosine:", sense: "Sense of sentence {n}: {sense}. Click to change the colour.",
  senseHelp: "The colour is the sense that you give a sentence; click a number to change it.",
  tooFew: "Add another sentence with the same word.", noWord: "Click the word in a sentence, or write it between asterisks: *word*.",
  occurrences: "{count} occurrences of {word} in {layer}",

  mixName: "Mix of layers",
  mixTitle: "A task mixes the layers",
  mixLead: "Move the weights and watch the nearest words change: the token layer finds words that look alike, the upper layers words that are used alike.",
  weight: "w for {layer}", weights: "Weights of the layers", shares: "Shares of the layers after the softmax", gamma: "scale γ",
  mixNote: "ELMo is γ Σ sⱼ hⱼ, where the shares s are the softmax of the weights w. γ makes the vector longer or shorter; cosines, and so the neighbours, do not depend on it.",
  length: "length of the vector", nearest: "Nearest words", fromSentences: "in your sentences", fromBundled: "in the bundled sentences",
  presets: "Only", average: "average", mixChoose: "Click the word whose vector is mixed",

  expectsName: "Expectations",
  expectsTitle: "What the model expects",
  expectsLead: "A darker word is a greater surprise. The forward half reads from the left and the backward half from the right: look at how differently they see the same word.",
  forward: "forward: given the words before", backward: "backward: given the words after", both: "both together",
  expectsPick: "Click a word: what would the model put there?", gapTitle: "Instead of “{word}”", outOf: "not in the vocabulary",
  surpriseKey: "expected … surprising", probability: "probability", noSoftmax: "This model has no softmax, so it predicts no words. Choose another model.",
  expectsNote: "The number under a word is its probability. Together, a word is judged by the product of both directions, divided by a power of its own frequency, which the product counts twice.",

  neighboursName: "Neighbours",
  neighboursTitle: "Nearest in context",
  neighboursLead: "The nearest occurrences in a text are used alike. The nearest words without the sentence only look alike.",
  index: "Text", noIndex: "There is no indexed text yet. Index one here, or start the server with --index.",
  ownText: "Index a text file (UTF-8, at most {words} words)", exampleText: "Index the example text", exampleTitle: "example text", build: "Index this file",
  building: "Indexing {title}: {done} of {total} sentences", ready: "{title} is ready.", chooseFile: "Choose a text file first.",
  queryHelp: "A sentence of your own; click the word to look up", inContext: "In this sentence", withoutContext: "Without the sentence (token layer)",
  line: "line {n}", mapTitle: "All occurrences of “{word}” in the text", mapNote: "Each point is an occurrence, on the first two principal components ({shown} of the variance). Colours are groups found by k-means; beside each stand the words that are typical of it.",
  mapMove: "Use the arrow keys to go through the points.", group: "group {n}", others: "no typical words", thinned: "{shown} of {total} occurrences are shown.",
  notInText: "“{word}” does not occur in the text.", frequentWords: "Frequent words of the text", uploadsOff: "This server has several processes, so it indexes no texts.",

  unknownName: "Unknown words",
  unknownTitle: "No word is unknown",
  unknownLead: "ELMo reads letters. The token layer already finds the word that was meant; the layers above choose what fits the sentence.",
  unknownPick: "A sentence with an unknown or misspelt word; click the word", isKnown: "“{word}” is one of the known words.", isUnknown: "“{word}” is not among the {count} known words.",
  unknownNote: "The token layer is compared with all known words. Above it, known words are put in the place of the word in the same sentence: the {count} with the nearest letters and the {count} that the model expects most.",
  noVocabulary: "This model has no list of known words. Choose another model.",

  tasksName: "Tasks",
  tasksTitle: "What task networks read from the vectors",
  tasksLead: "A small network on top of the mixed layers finds names, roles, feelings, answers and who is who.",
  noTasks: "This server has no task models. Train one and give it to the server:", task: "Task model", run: "Analyse",
  ner: "names", srl: "semantic roles", sentiment: "sentiment", nli: "entailment", qa: "answers", coref: "coreference",
  input_sentence: "Sentence", input_text: "Text", input_document: "Text", input_premise: "Premise", input_hypothesis: "Hypothesis",
  input_passage: "Passage", input_question: "Question", nothingFound: "Nothing found in this text.", label: "label", start: "start", end: "end",
  taskNote: "The label stands behind the words; point at them for the probability.", predicate: "predicate",
};

const KO = {
  tagline: "탐색기", skip: "본문으로 건너뛰기", otherLanguage: "English", model: "모델", navigation: "보기",
  loading: "계산하는 중 …", gone: "서버가 응답하지 않습니다. 서버가 돌아올 때까지 계속 다시 시도합니다.",
  busy: "서버가 바쁩니다. 잠시 후 다시 시도해 주세요.", needsKey: "이 서버에는 API 키가 필요합니다.", useKey: "이 키 사용",
  keep: "저장과 공유", copyLink: "링크 복사", copied: "복사했습니다", copyFailed: "주소창의 주소를 복사해 주세요",
  examples: "예", edit: "문장 직접 쓰기", sentences: "문장 (한 줄에 하나씩, 단어 앞뒤의 별표는 없어도 됩니다)", sentence: "문장", word: "단어", cosine: "코사인",
  pickWord: "비교할 단어를 누르세요", pickIn: "문장 {n}의 단어", pick: "단어를 누르세요",
  layer: "층", tokenLayer: "토큰 층", layerN: "{n}층", topLayer: "{n}층 (맨 위)", between: "{a}층과 {b}층 사이",
  footer: "pyelmo {version} · 입력한 글은 이 서버로만 보냅니다", api: "서버의 API",

  contextName: "문맥 속 단어",
  contextTitle: "단어는 하나, 문장이 다르면 벡터도 다르다",
  contextLead: "슬라이더를 움직여 보세요. 토큰 층에서는 문장이 달라도 단어가 한 점입니다. 층을 올라갈수록 문맥에 따라 뜻이 갈라집니다.",
  contextMap: "단어의 지도", play: "재생", stop: "정지",
  contextNote: "번호가 붙은 점은 각 문장에서 그 단어가 갖는 벡터이며, 길이를 1로 맞추었습니다. 모든 층이 같은 두 축(층마다 평균을 뺀 뒤 모든 층을 함께 분석한 주성분)을 쓰므로 점의 움직임은 벡터의 실제 변화입니다. 이 층의 분산 가운데 {shown}가 그림에 나타납니다. word2vec 같은 정적 벡터는 모든 문장에서 한 점, 곧 마름모입니다.",
  staticVector: "정적 벡터", matrix: "{layer}의 코사인 유사도", sameSense: "같은 뜻", otherSense: "다른 뜻",
  meanCosine: "평균 코사인:", sense: "문장 {n}의 뜻: {sense}. 누르면 색이 바뀝니다.",
  senseHelp: "색은 사용자가 정한 뜻입니다. 번호를 누르면 바뀝니다.",
  tooFew: "같은 단어가 들어 있는 문장을 하나 더 넣어 주세요.", noWord: "문장에서 단어를 누르거나 별표 사이에 쓰세요: *단어*",
  occurrences: "{layer}에서 ‘{word}’의 출현 {count}개",

  mixName: "층의 가중합",
  mixTitle: "과제는 층을 섞어서 쓴다",
  mixLead: "가중치를 움직이며 가까운 단어가 어떻게 바뀌는지 보세요. 토큰 층에서는 생김새가 비슷한 단어가, 위층에서는 쓰임이 비슷한 단어가 가깝습니다.",
  weight: "{layer}의 w", weights: "층의 가중치", shares: "소프트맥스를 거친 층의 비율", gamma: "크기 γ",
  mixNote: "ELMo 벡터는 γ Σ sⱼ hⱼ이고, 비율 s는 가중치 w의 소프트맥스입니다. γ는 벡터의 길이만 바꾸므로 코사인과 이웃은 달라지지 않습니다.",
  length: "벡터의 길이", nearest: "가장 가까운 단어", fromSentences: "입력한 문장에서", fromBundled: "내장된 예문에서",
  presets: "한 층만", average: "평균", mixChoose: "벡터를 섞을 단어를 누르세요",

  expectsName: "모델의 예측",
  expectsTitle: "모델은 어떤 단어를 기대할까",
  expectsLead: "색이 짙을수록 뜻밖의 단어입니다. 순방향 모델은 왼쪽부터, 역방향 모델은 오른쪽부터 읽습니다. 같은 단어를 두 방향이 얼마나 다르게 보는지 살펴보세요.",
  forward: "순방향: 앞의 단어들을 보고", backward: "역방향: 뒤의 단어들을 보고", both: "두 방향을 함께",
  expectsPick: "단어를 누르면 그 자리에 올 만한 단어가 나옵니다", gapTitle: "‘{word}’ 대신", outOf: "미등록 단어",
  surpriseKey: "예상한 단어 … 뜻밖의 단어", probability: "확률", noSoftmax: "이 모델에는 소프트맥스가 없어 단어를 예측하지 못합니다. 다른 모델을 고르세요.",
  expectsNote: "단어 아래의 수는 확률입니다. 두 방향을 함께 볼 때는 두 확률의 곱을 단어 자체의 빈도의 거듭제곱으로 나눕니다. 곱에서 빈도가 두 번 세어지기 때문입니다.",

  neighboursName: "이웃",
  neighboursTitle: "문맥에서 가장 가까운 이웃",
  neighboursLead: "글에서 가장 가까운 출현은 쓰임이 비슷합니다. 문장을 보지 않으면 생김새가 비슷한 단어가 가장 가깝습니다.",
  index: "글", noIndex: "아직 색인한 글이 없습니다. 여기에서 색인하거나 서버를 --index와 함께 시작하세요.",
  ownText: "텍스트 파일 색인 (UTF-8, {words}단어까지)", exampleText: "예문 색인", exampleTitle: "예문", build: "이 파일 색인",
  building: "{title} 색인 중: {total}문장 가운데 {done}문장", ready: "{title} 색인을 마쳤습니다.", chooseFile: "먼저 텍스트 파일을 고르세요.",
  queryHelp: "문장을 쓰고, 찾을 단어를 누르세요", inContext: "이 문장에서", withoutContext: "문장을 보지 않으면 (토큰 층)",
  line: "{n}번째 줄", mapTitle: "글에 나오는 모든 ‘{word}’", mapNote: "점 하나가 출현 하나이며, 두 축은 처음 두 주성분입니다(분산의 {shown}). 색은 k-평균으로 찾은 무리이고, 그 옆에는 무리의 특징이 되는 단어를 적었습니다.",
  mapMove: "화살표 키로 점을 차례로 볼 수 있습니다.", group: "무리 {n}", others: "특징이 되는 단어 없음", thinned: "출현 {total}개 가운데 {shown}개를 보입니다.",
  notInText: "‘{word}’은(는) 이 글에 나오지 않습니다.", frequentWords: "글에 자주 나오는 단어", uploadsOff: "이 서버는 프로세스가 여럿이어서 글을 색인하지 않습니다.",

  unknownName: "미등록 단어",
  unknownTitle: "모르는 단어는 없다",
  unknownLead: "ELMo는 글자를 읽습니다. 토큰 층이 이미 본래의 단어를 찾고, 위층은 문장에 어울리는 단어를 고릅니다.",
  unknownPick: "미등록 단어나 맞춤법이 틀린 단어가 든 문장을 쓰고 그 단어를 누르세요", isKnown: "‘{word}’은(는) 등록된 단어입니다.", isUnknown: "‘{word}’은(는) 등록된 단어 {count}개에 없습니다.",
  unknownNote: "토큰 층은 등록된 모든 단어와 비교합니다. 그 위의 층은 같은 문장의 같은 자리에 등록된 단어를 넣어 비교합니다. 글자가 가장 비슷한 단어 {count}개와 모델이 가장 기대하는 단어 {count}개입니다.",
  noVocabulary: "이 모델에는 등록된 단어 목록이 없습니다. 다른 모델을 고르세요.",

  tasksName: "과제",
  tasksTitle: "과제 신경망이 벡터에서 읽어 내는 것",
  tasksLead: "층을 섞은 벡터 위의 작은 신경망이 이름, 의미역, 감성, 답, 상호참조를 찾습니다.",
  noTasks: "이 서버에는 과제 모델이 없습니다. 학습한 모델을 서버에 주세요:", task: "과제 모델", run: "분석",
  ner: "개체명", srl: "의미역", sentiment: "감성", nli: "함의", qa: "질의응답", coref: "상호참조",
  input_sentence: "문장", input_text: "글", input_document: "글", input_premise: "전제", input_hypothesis: "가설",
  input_passage: "지문", input_question: "질문", nothingFound: "이 글에서는 찾은 것이 없습니다.", label: "레이블", start: "시작", end: "끝",
  taskNote: "레이블은 단어 뒤에 있습니다. 단어를 가리키면 확률이 보입니다.", predicate: "서술어",
};

const TEXTS = { en: EN, ko: KO };
let language = "en";

export function setLanguage(name) {
  language = TEXTS[name] ? name : "en";
  document.documentElement.lang = language;
}

export const lang = () => language;
export const languageOfBrowser = () => ((navigator.language || "en").toLowerCase().startsWith("ko") ? "ko" : "en");

export function t(key, values = {}) {
  const text = TEXTS[language][key] ?? EN[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// The name of layer `number` of `count`.
export function layerName(number, count) {
  if (number === 0) return t("tokenLayer");
  return number === count - 1 ? t("topLayer", { n: number }) : t("layerN", { n: number });
}
