// Sentences ready to click. Senses are the colours of the sentences.

export const CONTEXT = {
  en: {
    bank: {
      senses: "000111",
      sentences: [
        "They sat on the *bank* of the river.",
        "Reeds grow along the northern *bank* of the lake.",
        "A heron stood on the far *bank* of the stream.",
        "The *bank* gave her a loan to buy a house.",
        "He works for an investment *bank* in London.",
        "The central *bank* raised interest rates again.",
      ],
    },
    play: {
      senses: "000111",
      sentences: [
        "The *play* opened on Broadway in 1949.",
        "Critics praised the second act of the *play*.",
        "She wrote a *play* about the French Revolution.",
        "The boys *play* football in the park.",
        "Both teams *play* their home matches here.",
        "My sister wants to *play* chess.",
      ],
    },
    crane: {
      senses: "000111",
      sentences: [
        "The red-crowned *crane* is a rare bird.",
        "The *crane* built its nest in the marsh.",
        "In Japan the *crane* is a symbol of long life.",
        "Workers used a *crane* to unload the ship.",
        "They rented a mobile *crane* to set the roof on the house.",
        "A *crane* lifted the steel beams to the top of the tower.",
      ],
    },
  },
  ko: {
    배: {
      senses: "000111222",
      sentences: [
        "태풍이 다가오자 모든 *배*가 항구로 돌아왔다.",
        "낡은 *배*는 암초에 부딪혀 가라앉았다.",
        "그 *배*는 화물을 가득 싣고 부산항을 떠났다.",
        "점심을 너무 많이 먹어서 *배*가 아프다.",
        "아이는 *배*가 고프다고 울기 시작했다.",
        "찬 음식을 먹고 *배*를 앓아 병원에 갔다.",
        "추석에 사과와 *배*를 선물로 받았다.",
        "과수원에서 사과와 *배*를 땄다.",
        "이 지방에서는 *배*와 복숭아를 재배한다.",
      ],
    },
    눈: {
      senses: "000111",
      sentences: [
        "대관령에는 *눈*이 일 미터나 쌓였다.",
        "기상청은 내일 *눈*이나 비가 올 것이라고 예보했다.",
        "산꼭대기의 *눈*은 여름에도 녹지 않는다.",
        "책을 오래 읽었더니 *눈*이 피로하다.",
        "그는 *눈*을 감고 조용히 음악을 들었다.",
        "먼지가 들어갔는지 *눈*을 자꾸 비볐다.",
      ],
    },
    밤: {
      senses: "000111",
      sentences: [
        "*밤*이 되자 하늘에 별이 가득 나타났다.",
        "그는 *밤*마다 별을 관찰했다.",
        "여름 *밤*에는 모기가 많다.",
        "갈비찜에 껍질을 벗긴 *밤*을 넣는다.",
        "떡 속에 삶은 *밤*과 대추를 넣었다.",
        "가을이면 산에서 *밤*을 주워 구워 먹는다.",
      ],
    },
  },
};

export const EXPECTS = {
  en: [
    "He drank a cup of coffee with milk.",
    "The fish was jumping out of the water.",
    "He scored a goal in the second half.",
  ],
  ko: ["아침에 커피를 한 잔 마셨다.", "아이들이 눈을 뭉쳐 눈사람을 만들었다.", "그는 대학에서 한국 문학을 가르친다."],
};

export const UNKNOWN = {
  en: ["The *goverment* raised taxes.", "She is a brilliant *programer*.", "We will *definately* come back."],
  ko: ["새 *컴퓨타*로 프로그램을 만들었다.", "방을 *깨끗히* 청소했다.", "그는 *대학꾜* 교수이다."],
};

export const NEIGHBOURS = {
  en: [
    "He borrowed money from the *bank*.",
    "We had a picnic on the *bank* of the river.",
    "The children *play* in the garden.",
  ],
  ko: ["강을 건너는 *다리*를 놓았다.", "넘어져서 *다리*를 다쳤다.", "겨울에 *눈*이 많이 내렸다."],
};

export const TASKS = {
  ner: ["Ann Lee lives in New York and works for the United Nations."],
  srl: ["The teacher gave the children a book about birds."],
  sentiment: ["A lovely film with a weak ending."],
  nli: ["A man is playing a guitar on the stage.", "A man is making music."],
  qa: ["The Danube rises in the Black Forest and flows into the Black Sea.", "Where does the Danube rise?"],
  coref: ["Ann lost her keys. She found them under the sofa."],
};
export const TASKS_KO = {
  sentiment: ["배우들의 연기는 좋았지만 결말이 아쉬웠다."],
  ner: ["김연아는 경기도 부천시에서 태어났다."],
};
